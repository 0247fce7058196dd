#include <boost/test/unit_test.hpp>

#include "actors/request_state.hpp"
#include "runtime/policy/turn_epoch.hpp"

using namespace tokenrouter;

namespace {

const request_id id = make_request_id({0}, 7);
constexpr std::uint32_t prompt_tokens = 10;
constexpr std::uint64_t submitted_us = 1000;

request_state fresh_state() {
  return {id, prompt_tokens, 2, submitted_us};
}

commit made(std::uint32_t position, token_id token, std::uint16_t model = 0, turn_number turn = 1,
            finish_reason finish = finish_reason::none) {
  return {id, turn, position, token, {model}, {}, {}, finish};
}

std::vector<token_id> tokens_of(const std::vector<commit>& commits) {
  std::vector<token_id> tokens;
  for (const auto& x : commits)
    tokens.push_back(x.token);
  return tokens;
}

using tokens = std::vector<token_id>;

} // namespace

BOOST_AUTO_TEST_CASE(commits_are_put_in_order_by_position) {
  struct arrival {
    std::vector<commit> commits;
    tokens fresh;
  };
  struct row {
    const char* what;
    std::vector<arrival> arrivals;
  };
  const std::vector<row> rows{
      {"in order", {{{made(10, 1)}, {1}}, {{made(11, 2)}, {2}}}},
      {"swapped", {{{made(11, 2)}, {}}, {{made(10, 1)}, {1, 2}}}},
      {"swapped in one batch", {{{made(11, 2), made(10, 1)}, {1, 2}}}},
      {"three, the first last",
       {{{made(12, 3)}, {}}, {{made(11, 2)}, {}}, {{made(10, 1)}, {1, 2, 3}}}},
      {"the same again", {{{made(10, 1)}, {1}}, {{made(10, 1)}, {}}, {{made(11, 2)}, {2}}}},
      {"another token for a position", {{{made(10, 1)}, {1}}, {{made(10, 9)}, {}}}},
      {"another token for one that waits",
       {{{made(11, 2)}, {}}, {{made(11, 9)}, {}}, {{made(10, 1)}, {1, 2}}}},
      {"inside the prompt", {{{made(9, 9)}, {}}, {{made(10, 1)}, {1}}}},
  };
  for (const auto& r : rows) {
    BOOST_TEST_CONTEXT(r.what) {
      auto state = fresh_state();
      tokens all;
      for (auto arrival : r.arrivals) {
        const auto got = tokens_of(state.on_commits(std::move(arrival.commits), 2000));
        BOOST_TEST(got == arrival.fresh);
        all.insert(all.end(), got.begin(), got.end());
      }
      BOOST_TEST(tokens_of(state.result().output) == all);
      BOOST_TEST(!state.ended());
    }
  }
}

BOOST_AUTO_TEST_CASE(the_last_token_ends_it_and_nothing_comes_after) {
  auto state = fresh_state();
  state.on_commits({made(12, 3)}, 1500);
  const auto got = state.on_commits(
      {made(10, 1), made(11, 2, 0, 1, finish_reason::stop), made(12, 3), made(13, 4)}, 2000);
  BOOST_TEST(tokens_of(got) == (tokens{1, 2}));
  BOOST_TEST(state.ended());
  BOOST_TEST(state.on_commits({made(12, 3)}, 3000).empty());
  state.end(finish_reason::cancelled, {errc::cancelled, "too late"}, 3000);
  const auto done = state.result();
  BOOST_TEST((done.finish == finish_reason::stop));
  BOOST_TEST(done.failure.message.empty());
  BOOST_TEST(done.total_us == 1000u);
  BOOST_TEST(tokens_of(done.output) == (tokens{1, 2}));
}

BOOST_AUTO_TEST_CASE(an_end_that_waits_for_earlier_tokens_is_not_the_end_yet) {
  auto state = fresh_state();
  state.on_commits({made(11, 2, 0, 1, finish_reason::length)}, 1500);
  BOOST_TEST(!state.ended());
  state.on_commits({made(10, 1)}, 1700);
  BOOST_TEST((state.finish() == finish_reason::length));
  BOOST_TEST(state.result().total_us == 700u);
}

BOOST_AUTO_TEST_CASE(the_first_end_wins) {
  struct row {
    finish_reason first;
    finish_reason second;
  };
  for (const auto& r : {row{finish_reason::cancelled, finish_reason::failed},
                        row{finish_reason::failed, finish_reason::cancelled}}) {
    auto state = fresh_state();
    state.on_commits({made(10, 1)}, 1500);
    state.end(r.first, {errc::internal, "the first"}, 1600);
    state.end(r.second, {errc::internal, "the second"}, 1900);
    BOOST_TEST(state.on_commits({made(11, 2, 0, 1, finish_reason::stop)}, 2000).empty());
    const auto done = state.result();
    BOOST_TEST((done.finish == r.first));
    BOOST_TEST(done.failure.message == "the first");
    BOOST_TEST(done.total_us == 600u);
    BOOST_TEST(tokens_of(done.output) == tokens{1});
  }
}

BOOST_AUTO_TEST_CASE(times_run_from_the_submit) {
  auto state = fresh_state();
  BOOST_TEST(state.result().ttft_us == 0u);
  state.on_commits({made(11, 2)}, 1100); // ahead: nobody has seen a token yet
  state.on_commits({made(10, 1)}, 1250);
  state.on_commits({made(12, 3, 0, 1, finish_reason::stop)}, 1900);
  BOOST_TEST(state.result().ttft_us == 250u);
  BOOST_TEST(state.result().total_us == 900u);
}

BOOST_AUTO_TEST_CASE(handoffs_are_the_turns_up_to_the_last_token) {
  auto state = fresh_state();
  BOOST_TEST(state.result().handoffs == 0u);
  state.on_commits({made(10, 1, 0, 1)}, 1500);
  BOOST_TEST(state.result().handoffs == 0u);
  state.on_commits({made(11, 2, 1, 2), made(12, 3, 0, 3)}, 1500);
  BOOST_TEST(state.result().handoffs == 2u);
}

BOOST_AUTO_TEST_CASE(a_new_epoch_makes_again_what_is_not_in_order_and_drops_what_is_late) {
  auto state = fresh_state();
  method_state memory;
  memory.set(7);
  state.on_resumes({{id, 1, 11, {1}, memory}});
  state.on_commits({made(10, 1, 0, 1), made(12, 9, 0, 3)}, 1500);
  BOOST_REQUIRE(state.resume().has_value());
  BOOST_TEST(state.resume()->position == 11u);
  BOOST_TEST((state.resume()->next == model_id{1}));
  BOOST_TEST(state.resume()->state.get<int>() == 7);
  const auto turn = state.begin_epoch();
  BOOST_TEST(turn.value_or(0) == first_turn(1));
  state.on_resumes({{id, 4, 12, {0}, {}}});
  BOOST_TEST(state.on_commits({made(11, 8, 0, 4)}, 1600).empty()); // of a void turn
  const auto fresh =
      state.on_commits({made(11, 2, 1, first_turn(1)), made(12, 3, 0, first_turn(1) + 2)}, 1700);
  BOOST_TEST(fresh.size() == 2u);
  BOOST_TEST(fresh[1].token == 3);
  BOOST_TEST(state.result().handoffs == 2u);
  BOOST_TEST(state.begin_epoch().value_or(0) == first_turn(2));
}

BOOST_AUTO_TEST_CASE(usage_adds_up_over_replicas_and_tokens) {
  auto state = fresh_state();
  state.on_commits({made(10, 1, 0), made(11, 2, 1), made(12, 3, 0),
                    made(13, 4, 5)}, // a model that the job does not have
                   1500);
  state.end(finish_reason::cancelled, {errc::cancelled, ""}, 1600);
  state.on_released({id, {{0}, 0}, 8, 4, 3, 2, 10});
  state.on_released({id, {{0}, 1}, 5, 0, 0, 0, 5}); // a second replica of the same model
  state.on_released({id, {{1}, 0}, 0, 0, 0, 0, 0});
  state.on_released({id, {{7}, 0}, 3, 0, 0, 0, 3});
  const auto done = state.result();
  BOOST_TEST((done.request == id));
  BOOST_REQUIRE(done.usage.size() == 2u);
  BOOST_TEST(done.usage[0].generated_tokens == 2u);
  BOOST_TEST(done.usage[0].computed_tokens == 13u);
  BOOST_TEST(done.usage[0].cached_tokens == 4u);
  BOOST_TEST(done.usage[0].fetched_tokens == 3u);
  BOOST_TEST(done.usage[0].recomputed_tokens == 7u); // what both held was run twice
  BOOST_TEST(done.usage[0].kv_tokens == 10u);
  BOOST_TEST(done.usage[1].generated_tokens == 1u);
  BOOST_TEST(done.usage[1].computed_tokens == 0u);
}

BOOST_AUTO_TEST_CASE(a_stop_string_ends_it_at_the_token_that_completed_it) {
  auto state = fresh_state();
  state.on_commits({made(10, 1, 0), made(11, 2, 1)}, 1500);
  BOOST_TEST(
      state.on_commits({made(12, 3, 1), made(13, 4, 0, 1, finish_reason::length)}, 1600).size() ==
      2u);
  state.stop_after(3, 1700);
  const auto done = state.result();
  BOOST_TEST((done.finish == finish_reason::stop));
  BOOST_TEST(tokens_of(done.output) == (tokens{1, 2, 3}), boost::test_tools::per_element());
  BOOST_TEST(done.usage[0].generated_tokens == 1u);
  BOOST_TEST(done.usage[1].generated_tokens == 2u);
  BOOST_TEST(done.total_us == 700u);
  BOOST_TEST(state.on_commits({made(14, 5)}, 1800).empty());
}
