#include <boost/test/unit_test.hpp>

#include <array>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <set>
#include <vector>

#include "runtime/core/limits.hpp"
#include "runtime/core/philox.hpp"
#include "runtime/exec/scripted/scripted_backend.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

using tokens = std::vector<token_id>;
using blocks = std::vector<block_id>;

scripted_options small_model() {
  scripted_options options;
  options.seed = 5;
  options.weights_id = 9;
  options.vocab_tokens = 100;
  options.context_tokens_max = 256;
  options.eos_token = 99;
  options.heads = 2;
  return options;
}

tokens some_tokens(std::size_t count, token_id salt = 0) {
  tokens out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(static_cast<token_id>((i * 37 + static_cast<std::size_t>(salt) * 11) % 99));
  return out;
}

/// One row of a step, as a test writes it.
struct row_spec {
  tokens text; ///< the whole sequence; [start, end) of it is new
  std::uint32_t start = 0;
  std::uint32_t end = 0;
  blocks table;
  bool answered_positions = true;
  sampling_params sampling{};
};

constexpr signal_set all_signals =
    signal::entropy | signal::top_entropy | to_set(signal::evidence) | to_set(signal::heads);

step_input make_step(const std::vector<row_spec>& specs) {
  step_input in;
  for (const row_spec& spec : specs) {
    step_row row;
    row.token_offset = static_cast<std::uint32_t>(in.tokens.size());
    row.token_count = spec.end - spec.start;
    row.start_position = spec.start;
    row.block_offset = static_cast<std::uint32_t>(in.block_tables.size());
    row.block_count = static_cast<std::uint32_t>(spec.table.size());
    row.answered_positions = spec.answered_positions;
    row.signals = spec.answered_positions ? all_signals : 0;
    row.sampling = spec.sampling;
    row.sample_stream = sample_stream(3);
    in.tokens.insert(in.tokens.end(), spec.text.begin() + spec.start, spec.text.begin() + spec.end);
    in.block_tables.insert(in.block_tables.end(), spec.table.begin(), spec.table.end());
    in.rows.push_back(row);
  }
  return in;
}

std::vector<step_row_output> run(scripted_backend& model, const std::vector<row_spec>& specs) {
  step_output out;
  model.step(make_step(specs), out);
  return out.rows;
}

step_row_output expected(const scripted_options& options, tokens text, std::size_t end,
                         const sampling_params& sampling = {}) {
  text.resize(end);
  return scripted_answer(options, text, all_signals, sampling, sample_stream(3));
}

void check_equal(const step_row_output& a, const step_row_output& b) {
  BOOST_TEST(a.token == b.token);
  BOOST_TEST(a.logprob == b.logprob);
  BOOST_TEST(a.entropy_nats == b.entropy_nats);
  BOOST_TEST(a.entropy_top20_nats == b.entropy_top20_nats);
  BOOST_TEST(a.aleatoric == b.aleatoric);
  BOOST_TEST(a.epistemic == b.epistemic);
  BOOST_TEST(a.head_scores == b.head_scores, tt::per_element());
}

/// True if `body` ends its process by a failed check.
bool fails_a_check(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr)
      _exit(2);
    ::signal(SIGABRT, SIG_DFL);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

struct fixture {
  scripted_options options = small_model();
  scripted_backend model{options};
  fixture() { BOOST_REQUIRE(model.allocate_kv(32)); }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(scripted, fixture)

BOOST_AUTO_TEST_CASE(chunks_batches_and_block_numbers_do_not_change_an_answer) {
  const tokens text = some_tokens(40);
  const auto want = expected(options, text, 40);
  check_equal(run(model, {{text, 0, 40, {0, 1, 2}}})[0], want);

  run(model, {{text, 0, 7, {9, 4}, false}});
  run(model, {{text, 7, 16, {9, 4}, false}, {some_tokens(3, 2), 0, 3, {20}}});
  const auto rows = run(model, {{some_tokens(20, 1), 0, 20, {5, 6}}, {text, 16, 40, {9, 4, 30}}});
  check_equal(rows[1], want);
  check_equal(rows[0], expected(options, some_tokens(20, 1), 20));
}

BOOST_AUTO_TEST_CASE(a_decode_continues_from_stored_blocks) {
  tokens text = some_tokens(15);
  run(model, {{text, 0, 15, {3, 8, 1}, false}});
  for (std::uint32_t n = 15; n < 40; ++n) {
    text.push_back(static_cast<token_id>(n));
    check_equal(run(model, {{text, n, n + 1, {3, 8, 1}}})[0], expected(options, text, n + 1));
  }
}

BOOST_AUTO_TEST_CASE(a_prefix_block_may_be_read_by_several_rows) {
  tokens a = some_tokens(17), b = a;
  b[16] = 55;
  run(model, {{a, 0, 16, {7}, false}});
  const auto rows = run(model, {{a, 16, 17, {7, 1}}, {b, 16, 17, {7, 2}}});
  check_equal(rows[0], expected(options, a, 17));
  check_equal(rows[1], expected(options, b, 17));
  BOOST_TEST(rows[0].logprob != rows[1].logprob);
}

BOOST_AUTO_TEST_CASE(any_token_and_the_weights_id_change_the_answer) {
  const tokens text = some_tokens(30);
  std::set<float> logprobs{expected(options, text, 30).logprob};
  for (std::size_t i = 0; i < text.size(); ++i) {
    tokens other = text;
    other[i] = (other[i] + 1) % 99;
    logprobs.insert(expected(options, other, 30).logprob);
  }
  scripted_options other = options;
  other.weights_id = 10;
  logprobs.insert(expected(other, text, 30).logprob);
  other = options;
  other.seed = 6;
  logprobs.insert(expected(other, text, 30).logprob);
  BOOST_TEST(logprobs.size() == 33u);
  scripted_backend twin(options);
  BOOST_REQUIRE(twin.allocate_kv(2));
  check_equal(run(twin, {{text, 0, 30, {1, 0}}})[0], expected(options, text, 30));
}

BOOST_AUTO_TEST_CASE(sampling_mixes_in_seed_and_position_only_above_temperature_zero) {
  const tokens text = some_tokens(12);
  sampling_params cold, hot;
  cold.seed = hot.seed = 77;
  hot.temperature = 1;
  check_equal(run(model, {{text, 0, 12, {0}, true, cold}})[0], expected(options, text, 12));
  const auto drawn = run(model, {{text, 0, 12, {0}, true, hot}})[0];
  check_equal(drawn, expected(options, text, 12, hot));
  hot.seed = 78;
  BOOST_TEST(drawn.logprob != expected(options, text, 12, hot).logprob);
  BOOST_TEST(drawn.entropy_nats == expected(options, text, 12).entropy_nats);
}

BOOST_AUTO_TEST_CASE(biases_change_the_token_and_no_signal) {
  const tokens text = some_tokens(12);
  sampling_params biased;
  std::set<float> logprobs;
  for (const float bias : {0.0f, 1.0f, 2.0f}) {
    biased.biases = {{3, bias}};
    const auto out = run(model, {{text, 0, 12, {0}, true, biased}})[0];
    check_equal(out, expected(options, text, 12, biased));
    BOOST_TEST(out.entropy_nats == expected(options, text, 12).entropy_nats);
    logprobs.insert(out.logprob);
  }
  logprobs.insert(expected(options, text, 12).logprob);
  BOOST_TEST(logprobs.size() == 4u);
}

BOOST_AUTO_TEST_CASE(end_token_and_signals_follow_their_options) {
  options.eos_odds = 0.25;
  options.entropy_nats = {1.0f, 2.0f};
  options.head_scores = {0.4f, 0.5f};
  int ends = 0;
  double entropy = 0;
  std::set<token_id> seen;
  const int n = 4000;
  for (int i = 0; i < n; ++i) {
    const auto out = scripted_answer(options, tokens{i % 99, i / 99}, all_signals);
    ends += out.token == options.eos_token;
    seen.insert(out.token);
    BOOST_REQUIRE(out.token >= 0 && out.token < 100);
    BOOST_REQUIRE(out.entropy_nats >= 1.0f && out.entropy_nats <= 2.0f);
    BOOST_REQUIRE(out.head_scores[1] >= 0.4f && out.head_scores[1] <= 0.5f);
    BOOST_REQUIRE(out.head_scores[2] == 0.0f);
    entropy += out.entropy_nats;
  }
  BOOST_TEST(ends == n * 0.25, tt::tolerance(0.1));
  BOOST_TEST(entropy / n == 1.5, tt::tolerance(0.02));
  BOOST_TEST(seen.size() == 100u);
}

BOOST_AUTO_TEST_CASE(cost_and_computed_tokens_are_counted) {
  options.step_base_us = 100;
  options.step_row_us = 10;
  options.step_token_us = 1;
  scripted_backend costly(options);
  BOOST_REQUIRE(costly.allocate_kv(8));
  step_output out;
  costly.step(make_step({{some_tokens(20), 0, 20, {0, 1}}, {some_tokens(3), 0, 3, {2}, false}}),
              out);
  BOOST_TEST(out.step_us == 143u);
  BOOST_TEST(out.rows[1].token == -1);
  BOOST_TEST(costly.computed_tokens() == 23u);
  BOOST_TEST(costly.steps() == 1u);
}

BOOST_AUTO_TEST_CASE(copied_and_exported_blocks_carry_the_sequence) {
  const tokens text = some_tokens(33);
  run(model, {{text, 0, 32, {0, 1}, false}});
  model.copy_blocks(std::vector<block_copy>{{0, 10}, {1, 11}});
  check_equal(run(model, {{text, 32, 33, {10, 11, 12}}})[0], expected(options, text, 33));

  scripted_backend other(options);
  BOOST_REQUIRE(other.allocate_kv(4));
  std::vector<std::byte> bytes(model.facts().kv_bytes_per_block);
  for (const block_id block : {0u, 1u}) {
    model.export_blocks(std::array{block_id{block}}, bytes);
    other.import_blocks(std::array{block_id{3 - block}}, bytes);
  }
  check_equal(run(other, {{text, 32, 33, {3, 2, 0}}})[0], expected(options, text, 33));
}

BOOST_AUTO_TEST_CASE(a_window_holds_answered_positions_and_a_short_one_changes_the_score) {
  options.head_window_positions = 3;
  scripted_backend windowed(options);
  BOOST_REQUIRE(windowed.allocate_kv(4));
  const tokens text = some_tokens(20);
  // Runs positions [start, end), the last `answered` of them answered.
  const auto score = [&](std::uint32_t start, std::uint32_t end, std::uint32_t answered,
                         std::uint32_t window_start) {
    auto in = make_step({{text, start, end, {1, 2}}});
    in.rows[0].answered_positions = answered;
    in.rows[0].window_start_position = window_start;
    step_output out;
    windowed.step(in, out);
    return out.rows[0].head_scores[0];
  };
  const float whole = expected(options, text, 18).head_scores[0];
  BOOST_TEST(score(0, 17, 2, 15) != expected(options, text, 17).head_scores[0]);
  BOOST_TEST(score(17, 18, 1, 15) == whole);
  BOOST_TEST(score(17, 18, 1, 16) != whole);
  BOOST_TEST(fails_a_check([&] { score(16, 18, 1, 15); }));
  BOOST_TEST(fails_a_check([&] { score(17, 18, 1, 18); }));
}

BOOST_AUTO_TEST_CASE(a_pool_beyond_its_bound_is_refused) {
  options.kv_blocks_max = 4;
  scripted_backend bounded(options);
  const auto refused = bounded.allocate_kv(5);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::capacity));
  BOOST_TEST(refused.error().message ==
             "a KV pool of 5 blocks was asked of a scripted model that has room for 4");
  BOOST_TEST(bounded.allocate_kv(4).has_value());
}

BOOST_AUTO_TEST_CASE(broken_block_tables_and_inputs_fail_a_check) {
  const tokens text = some_tokens(40), other = some_tokens(40, 3);
  run(model, {{text, 0, 40, {0, 1, 2}}, {other, 0, 40, {4, 5, 6}}});
  const std::pair<const char*, std::vector<row_spec>> cases[] = {
      {"blocks in another order", {{text, 39, 40, {1, 0, 2}}}},
      {"a block of another sequence", {{text, 39, 40, {0, 5, 2}}}},
      {"a block that was never written", {{text, 39, 40, {0, 1, 20}}}},
      {"positions that were skipped", {{text, 10, 12, {21}}}},
      {"a block outside the pool", {{text, 39, 40, {0, 1, 32}}}},
      {"a table that is too short", {{text, 39, 40, {0, 1}}}},
      {"two rows writing one block", {{text, 0, 3, {9}}, {other, 0, 3, {9}}}},
      {"a row reading what another writes", {{text, 16, 17, {0, 9}}, {other, 0, 3, {0}}}},
      {"one row using a block twice", {{text, 0, 20, {9, 9}}}},
      {"no rows", {}},
      {"an empty row", {{text, 3, 3, {0}}}},
      {"a token outside the vocabulary", {{{100}, 0, 1, {0}}}},
  };
  for (const auto& [what, specs] : cases) {
    BOOST_TEST_INFO(what);
    BOOST_TEST(fails_a_check([&] { run(model, specs); }));
  }
  BOOST_TEST(!fails_a_check([&] { run(model, {{text, 39, 40, {0, 1, 2}}}); }));
}

BOOST_AUTO_TEST_SUITE_END()
