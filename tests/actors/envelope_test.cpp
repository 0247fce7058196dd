#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <variant>

#include "actors/envelope.hpp"
#include "runtime/core/limits.hpp"

using namespace tokenrouter;

namespace {

constexpr float nan_score = std::numeric_limits<float>::quiet_NaN();
const request_id id = make_request_id({3}, 5);

handoff sample_handoff() {
  handoff x;
  x.request = id;
  x.turn = 4;
  x.from = {{1}, 2};
  x.to = {{0}, 1};
  x.offset = 7;
  x.tokens = {10, 0, 99};
  x.kv_tokens = {9, 10};
  x.position_score = {0.5f};
  x.tentative = {{{1}, {-0.5f}, {nan_score}, {{7, {-0.25f}}, {8, {-3.0f}}}}};
  x.mix = {{0.25f}, {{0.5f}, {0.5f}}};
  x.spec = {6,    20,    true, {0.7f, 40, 0.9f, 0.1f, 1234567890123ull, {{3, -100.0f}, {9, 0.5f}}},
            2,    true,  true, {0.75f},
            0.42, {0, 3}};
  x.state.set(std::uint64_t{77});
  return x;
}

commit sample_commit() {
  return {id, 4, 9, 42, {1}, {0.25f}, {-1.5f}, finish_reason::length, {{42, {-1.5f}}}};
}

using any_message =
    std::variant<handoff, handoff_gap, commit_batch, request_failed, release, released, rank_ready,
                 end_job, announce, replica_report, batching_update, shard_invite, shard_step,
                 shard_awake, status_query, replica_status, kv_greeting, prefix_ask, prefix_offer,
                 kv_borrow, kv_loan, kv_return, recall, peer_lost, rank_lost, kv_way, kv_fill,
                 kv_filled, kv_wish, kv_parcel>;

step_row sample_row() {
  step_row row;
  row.request = id;
  row.token_offset = 1;
  row.token_count = 2;
  row.start_position = 15;
  row.block_offset = 1;
  row.block_count = 2;
  row.answered_positions = 2;
  row.signals = to_set(signal::entropy);
  row.window_start_position = 3;
  row.sampling = {0.7f, 40, 0.9f, 0.1f, 1234567890123ull};
  row.sample_stream = 6;
  row.mix_weight = 0.25f;
  row.mix_offset = 1;
  row.likeliest_count = 4;
  row.scored_positions = 1;
  row.scored_offset = 1;
  return row;
}

shard_step sample_shard_step() {
  return {{{{1}, 2}, 1},
          {{{3, 4}}, {7, 8, 9}, {5, 6, 11}, {sample_row()}, {1, 2}, {0.5f, nan_score}}};
}

std::vector<any_message> one_of_each() {
  return {
      sample_handoff(),
      handoff_gap{id, 4, {{1}, 0}, {{2}, 1}, 17},
      commit_batch{{3},
                   {sample_commit(), sample_commit()},
                   {{id, {{5, {}, {}}, {6, {-1.0f}, {{6, {-1.0f}}}}}}}},
      request_failed{id, errc::mismatch, "no way \n\xe2\x82\xac"},
      release{id, {{2}, 1}},
      released{id, {{2}, 1}, 1ull << 40, 4, 2, 5, 3},
      rank_ready{{2}, {{{{1}, 0}, 160, 1024, 0xfeedfacecafebeefull}, {}}},
      end_job{{1}, 9, "the reason"},
      announce{id, {{1}, 3}},
      replica_report{{{1}, 0}, {{3, 400}, {1, 90}}, {5, 6}, {7, 0}, 9},
      batching_update{{{0}, 1}, {{1, 2, 2}, {}}},
      shard_invite{{{{1}, 2}, 1}, {1, 2, 255}},
      sample_shard_step(),
      shard_awake{{{{1}, 2}, 1}, true},
      status_query{7, {2}, {{1}, 0}},
      replica_status{7, {2}, {{1}, 0}, 100, 60, 1234},
      kv_greeting{{{{1}, 0}, 2}, {{{1}, 1}, 2}, 1ull << 50, {1, 2, 3}},
      prefix_ask{{{1}, 0}, {{1}, 1}, 8, std::vector<token_id>(32, 5)},
      prefix_offer{{{1}, 1}, {{1}, 0}, 8, 16},
      kv_borrow{{{1}, 0}, {{1}, 1}, 8, 1, 1, std::vector<token_id>(32, 5)},
      kv_loan{{{1}, 1}, {{1}, 0}, 8, 1, {4}},
      kv_return{{{1}, 0}, {{1}, 1}, 8, 1},
      recall{id, 1u << 22, {{1}, 0}},
      peer_lost{{3}, "no sign of life"},
      rank_lost{{1}, {3}},
      kv_way{{{{1}, 0}, 2}, {{1}, 0}, {{1}, 1}, true, true, 1ull << 22},
      kv_fill{{{{1}, 0}, 2}, {{1}, 1}, 8, 1, {{4, 9}}},
      kv_filled{{{{1}, 0}, 2}, {{1}, 0}, 8, 1, true},
      kv_wish{{{{1}, 0}, 2}, {{{1}, 1}, 2}, 9, 77, {4, 5}},
      kv_parcel{{{{1}, 1}, 2}, {{{1}, 0}, 2}, 9, true, 0xfeed},
  };
}

std::vector<std::byte> seal_any(const any_message& x) {
  return std::visit([](const auto& message) { return seal(message); }, x);
}

result<any_message> open_any(std::span<const std::byte> bytes) {
  std::optional<any_message> got;
  int visits = 0;
  const auto outcome = open_envelope(bytes, [&](auto&& message) {
    ++visits;
    got = std::move(message);
  });
  BOOST_TEST(visits == (outcome ? 1 : 0));
  if (!outcome)
    return tl::unexpected(outcome.error());
  return *got;
}

/// Reads back from what the sender's promises hold for, and is refused if they do not.
template <class Message>
bool accepted(const Message& x) {
  const auto got = open_any(seal(x));
  BOOST_TEST(got.has_value() == valid(x));
  return got.has_value();
}

} // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_message_comes_back_as_it_was) {
  const auto samples = one_of_each();
  BOOST_TEST(samples.size() == std::tuple_size_v<wire_messages>);
  for (std::size_t kind = 0; kind < samples.size(); ++kind) {
    BOOST_TEST_CONTEXT("kind " << kind) {
      const auto bytes = seal_any(samples[kind]);
      BOOST_TEST(std::to_integer<std::size_t>(bytes.at(0)) == kind);
      const auto got = open_any(bytes);
      BOOST_REQUIRE(got.has_value());
      BOOST_TEST(got->index() == kind);
      BOOST_TEST((seal_any(*got) == bytes));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_handoff_keeps_every_field) {
  const auto sent = sample_handoff();
  const auto opened = open_any(seal(sent));
  BOOST_REQUIRE(opened.has_value());
  const auto& got = std::get<handoff>(*opened);
  BOOST_TEST((got.request == sent.request));
  BOOST_TEST(got.turn == sent.turn);
  BOOST_TEST((got.from == sent.from));
  BOOST_TEST((got.to == sent.to));
  BOOST_TEST(got.offset == sent.offset);
  BOOST_TEST(got.tokens == sent.tokens);
  BOOST_TEST(got.kv_tokens == sent.kv_tokens);
  BOOST_REQUIRE(got.tentative.size() == 1u);
  BOOST_TEST(got.tentative[0].maker.value == 1u);
  BOOST_TEST(got.tentative[0].logprob.value == -0.5f);
  BOOST_TEST(std::isnan(got.tentative[0].score.value));
  BOOST_REQUIRE(got.tentative[0].top.size() == 2u);
  BOOST_TEST(got.tentative[0].top[1].token == 8);
  BOOST_TEST(got.tentative[0].top[1].logprob.value == -3.0f);
  BOOST_TEST(got.mix.weight.value == 0.25f);
  BOOST_TEST(got.mix.distribution.size() == 2u);
  BOOST_TEST(got.spec.request_score.value == 0.75f);
  BOOST_TEST(got.spec.threshold == 0.42);
  BOOST_TEST(got.spec.replicas == sent.spec.replicas);
  BOOST_TEST(got.spec.top_logprobs == 2u);
  BOOST_TEST((got.spec.prompt_logprobs && got.spec.pinned));
  BOOST_TEST(got.position_score.value == sent.position_score.value);
  BOOST_TEST(got.spec.prompt_tokens == sent.spec.prompt_tokens);
  BOOST_TEST(got.spec.max_new_tokens == sent.spec.max_new_tokens);
  BOOST_TEST(got.spec.ignore_eos == sent.spec.ignore_eos);
  BOOST_TEST((got.spec.sampling == sent.spec.sampling));
  BOOST_TEST((got.state == sent.state));
}

BOOST_AUTO_TEST_CASE(a_step_reaches_other_shards_as_it_is) {
  const auto sent = sample_shard_step();
  const auto opened = open_any(seal(sent));
  BOOST_REQUIRE(opened.has_value());
  const auto& got = std::get<shard_step>(*opened);
  BOOST_TEST((got.to == sent.to));
  BOOST_TEST(got.step.tokens == sent.step.tokens);
  BOOST_TEST(got.step.block_tables == sent.step.block_tables);
  BOOST_TEST(got.step.scored_tokens == sent.step.scored_tokens);
  BOOST_TEST((got.step.copies.at(0).from == 3u && got.step.copies.at(0).to == 4u));
  BOOST_TEST(got.step.mixes.at(0) == 0.5f);
  BOOST_TEST(std::isnan(got.step.mixes.at(1)));
  const auto& row = got.step.rows.at(0);
  const auto want = sample_row();
  BOOST_TEST((row.request == want.request));
  BOOST_TEST(row.token_offset == want.token_offset);
  BOOST_TEST(row.token_count == want.token_count);
  BOOST_TEST(row.start_position == want.start_position);
  BOOST_TEST(row.block_offset == want.block_offset);
  BOOST_TEST(row.block_count == want.block_count);
  BOOST_TEST(row.answered_positions == want.answered_positions);
  BOOST_TEST(row.signals == want.signals);
  BOOST_TEST(row.window_start_position == want.window_start_position);
  BOOST_TEST((row.sampling == want.sampling));
  BOOST_TEST(row.sample_stream == want.sample_stream);
  BOOST_TEST(row.mix_weight == want.mix_weight);
  BOOST_TEST(row.mix_offset == want.mix_offset);
  BOOST_TEST(row.likeliest_count == want.likeliest_count);
  BOOST_TEST(row.scored_positions == want.scored_positions);
  BOOST_TEST(row.scored_offset == want.scored_offset);
}

BOOST_AUTO_TEST_CASE(a_step_that_points_beyond_itself_is_refused) {
  const std::vector<std::function<void(shard_step&)>> faults{
      [](auto& x) { x.to.index = 0; }, // the one that leads is not told
      [](auto& x) { x.to.replica.model.value = limits::models_max; },
      [](auto& x) { x.step.rows.clear(); },
      [](auto& x) { x.step.rows[0].token_count = 0; },
      [](auto& x) { x.step.rows[0].token_offset = 2; },
      [](auto& x) { x.step.rows[0].block_offset = 2; },
      [](auto& x) { x.step.rows[0].block_count = 1; }, // 17 positions need two
      [](auto& x) { x.step.rows[0].start_position = UINT32_MAX; },
      [](auto& x) { x.step.rows[0].answered_positions = 3; },
      [](auto& x) { x.step.rows[0].likeliest_count = limits::top_logprobs_max + 1; },
      [](auto& x) { x.step.rows[0].scored_positions = 2; },
      [](auto& x) { x.step.rows[0].sampling.temperature = nan_score; },
      [](auto& x) { x.step.rows.assign(limits::batch_rows_max + 1, x.step.rows[0]); },
  };
  BOOST_TEST(accepted(sample_shard_step()));
  for (std::size_t i = 0; i < faults.size(); ++i) {
    auto x = sample_shard_step();
    faults[i](x);
    BOOST_TEST(!accepted(x), "fault " << i);
  }
  BOOST_TEST(!accepted(shard_invite{{{{1}, 2}, 0}, {1}}));
  BOOST_TEST(!accepted(shard_awake{{{{1}, 2}, 0}, true}));
  BOOST_TEST(!accepted(shard_invite{
      {{{1}, 2}, 1}, std::vector<std::uint8_t>(limits::shard_group_id_bytes_max + 1)}));
}

BOOST_AUTO_TEST_CASE(scores_cross_bit_for_bit) {
  for (const float score : {nan_score, -nan_score, std::numeric_limits<float>::infinity(), -0.0f,
                            std::numeric_limits<float>::denorm_min(), 0.1f}) {
    auto one = sample_commit();
    one.score = {score};
    one.logprob = {score};
    const auto batch = open_any(seal(commit_batch{{3}, {one}}));
    BOOST_REQUIRE(batch.has_value());
    const auto& got = std::get<commit_batch>(*batch).commits.at(0);
    const auto bits = std::bit_cast<std::uint32_t>(score);
    BOOST_TEST(std::bit_cast<std::uint32_t>(got.score.value) == bits);
    BOOST_TEST(std::bit_cast<std::uint32_t>(got.logprob.value) == bits);

    auto turn = sample_handoff();
    turn.position_score = {score};
    const auto handed = open_any(seal(turn));
    BOOST_REQUIRE(handed.has_value());
    BOOST_TEST(std::bit_cast<std::uint32_t>(std::get<handoff>(*handed).position_score.value) ==
               bits);
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_surplus_is_refused) {
  for (const auto& sample : one_of_each()) {
    auto bytes = seal_any(sample);
    for (std::size_t kept = 0; kept < bytes.size(); ++kept) {
      const auto got = open_any(std::span(bytes).first(kept));
      BOOST_REQUIRE(!got.has_value());
      BOOST_TEST((got.error().code == errc::malformed));
    }
    bytes.push_back(std::byte{0});
    BOOST_TEST(!open_any(bytes).has_value());
  }
}

BOOST_AUTO_TEST_CASE(an_unknown_kind_is_refused_by_its_number) {
  for (std::size_t kind = std::tuple_size_v<wire_messages>; kind < 256; ++kind) {
    const auto got = open_any(std::vector{static_cast<std::byte>(kind), std::byte{1}});
    BOOST_REQUIRE(!got.has_value());
    BOOST_TEST((got.error().code == errc::malformed));
    BOOST_TEST(got.error().message.find(std::to_string(kind)) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_handoff_that_breaks_its_promises_is_refused) {
  struct row {
    const char* what;
    std::function<void(handoff&)> change;
    bool fine;
  };
  const std::vector<row> rows{
      {"as it is", [](handoff&) {}, true},
      {"no tokens", [](handoff& x) { x.tokens.clear(); }, false},
      {"a negative token", [](handoff& x) { x.tokens[1] = -1; }, false},
      {"turn 0", [](handoff& x) { x.turn = 0; }, false},
      {"from no model", [](handoff& x) { x.from.model.value = limits::models_max; }, false},
      {"to no model", [](handoff& x) { x.to.model.value = limits::models_max; }, false},
      {"beyond the longest context", [](handoff& x) { x.offset = limits::context_tokens_max - 2; },
       false},
      {"up to the longest context", [](handoff& x) { x.offset = limits::context_tokens_max - 3; },
       true},
      {"an offset that wraps round", [](handoff& x) { x.offset = 0xffffffffu; }, false},
      {"more KV than tokens", [](handoff& x) { x.kv_tokens = {11}; }, false},
      {"KV of all tokens", [](handoff& x) { x.kv_tokens = {10}; }, true},
      {"KV of too many models", [](handoff& x) { x.kv_tokens.assign(limits::models_max + 1, 0); },
       false},
      {"no prompt", [](handoff& x) { x.spec.prompt_tokens = 0; }, false},
      {"a prompt longer than all tokens", [](handoff& x) { x.spec.prompt_tokens = 11; }, false},
      {"nothing to generate", [](handoff& x) { x.spec.max_new_tokens = 0; }, false},
      {"temperature NaN", [](handoff& x) { x.spec.sampling.temperature = nan_score; }, false},
      {"temperature below 0", [](handoff& x) { x.spec.sampling.temperature = -0.1f; }, false},
      {"infinite temperature",
       [](handoff& x) { x.spec.sampling.temperature = std::numeric_limits<float>::infinity(); },
       false},
      {"top_p 0", [](handoff& x) { x.spec.sampling.top_p = 0; }, false},
      {"top_p above 1", [](handoff& x) { x.spec.sampling.top_p = 1.1f; }, false},
      {"top_p NaN", [](handoff& x) { x.spec.sampling.top_p = nan_score; }, false},
      {"min_p below 0", [](handoff& x) { x.spec.sampling.min_p = -0.1f; }, false},
      {"a bias beyond the largest",
       [](handoff& x) {
         x.spec.sampling.biases = {{5, 100.5f}};
       },
       false},
      {"biases out of order",
       [](handoff& x) {
         x.spec.sampling.biases = {{5, 1.0f}, {4, 1.0f}};
       },
       false},
      {"a token biased twice",
       [](handoff& x) {
         x.spec.sampling.biases = {{5, 1.0f}, {5, 2.0f}};
       },
       false},
      {"a bias of no token",
       [](handoff& x) {
         x.spec.sampling.biases = {{-1, 1.0f}};
       },
       false},
      {"a NaN threshold",
       [](handoff& x) { x.spec.threshold = std::numeric_limits<double>::quiet_NaN(); }, false},
      {"min_p NaN", [](handoff& x) { x.spec.sampling.min_p = nan_score; }, false},
  };
  for (const auto& r : rows) {
    auto x = sample_handoff();
    r.change(x);
    BOOST_TEST(accepted(x) == r.fine, r.what);
  }
}

BOOST_AUTO_TEST_CASE(a_method_state_above_its_limit_is_refused) {
  struct fits {
    std::array<std::byte, limits::method_state_bytes_max> bytes;
  };
  auto x = sample_handoff();
  x.state.set(fits{});
  auto bytes = seal(x);
  BOOST_TEST(open_any(bytes).has_value());
  // The state is the last field: its length, then its bytes.
  const std::size_t at = bytes.size() - limits::method_state_bytes_max - 4;
  BOOST_REQUIRE(std::to_integer<unsigned>(bytes[at]) == 0u);
  BOOST_REQUIRE(std::to_integer<unsigned>(bytes[at + 1]) == 1u);
  bytes[at] = std::byte{1};
  bytes.push_back(std::byte{0});
  const auto got = open_any(bytes);
  BOOST_REQUIRE(!got.has_value());
  BOOST_TEST(got.error().message.find("contract") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_commit_that_breaks_its_promises_is_refused) {
  struct row {
    const char* what;
    std::function<void(commit&)> change;
    bool fine;
  };
  const std::vector<row> rows{
      {"as it is", [](commit&) {}, true},
      {"of another home", [](commit& x) { x.request = make_request_id({2}, 5); }, false},
      {"turn 0", [](commit& x) { x.turn = 0; }, false},
      {"a negative token", [](commit& x) { x.token = -1; }, false},
      {"beyond the longest context", [](commit& x) { x.position = limits::context_tokens_max; },
       false},
      {"of no model", [](commit& x) { x.model.value = limits::models_max; }, false},
      {"an unknown finish", [](commit& x) { x.finish = static_cast<finish_reason>(5); }, false},
  };
  for (const auto& r : rows) {
    auto x = sample_commit();
    r.change(x);
    BOOST_TEST(accepted(commit_batch{{3}, {sample_commit(), x}}) == r.fine, r.what);
  }
  BOOST_TEST(!accepted(commit_batch{{3}, {}}));
}
