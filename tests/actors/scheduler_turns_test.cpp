#include <boost/test/unit_test.hpp>

#include <cmath>

#include "runtime/core/philox.hpp"
#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

const request_id id = make_request_id({0}, 1);
using tokens = std::vector<token_id>;

route_decision go(route_action action, std::uint16_t target, float score) {
  return {action, {target}, score};
}

} // namespace

BOOST_AUTO_TEST_CASE(an_admitted_request_is_planned_run_and_committed) {
  scheduler_bench b;
  auto first = scheduler_bench::admission(id, {5, 6, 7});
  first.spec.sampling.seed = 17;
  b.take(std::move(first));
  BOOST_TEST(b.quiet());
  BOOST_TEST(b.state.live_requests() == 1u);

  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.tokens == (tokens{5, 6, 7}));
  BOOST_REQUIRE(b.work.in.rows.size() == 1u);
  const auto& row = b.work.in.rows[0];
  BOOST_TEST((row.request == id));
  BOOST_TEST(row.token_offset == 0u);
  BOOST_TEST(row.token_count == 3u);
  BOOST_TEST(row.start_position == 0u);
  BOOST_TEST(row.block_offset == 0u);
  BOOST_TEST(row.block_count == 1u);
  BOOST_TEST(row.answered_positions);
  BOOST_TEST(row.signals == to_set(signal::entropy));
  BOOST_TEST(row.sampling.seed == 17u);
  BOOST_TEST(row.sample_stream == sample_stream(0));
  BOOST_TEST(!b.state.plan(b.now_us)); // one step at a time

  b.script->decisions.push_back(go(route_action::stay, 0, 0.25f));
  b.finish({42});
  const auto commits = b.commits();
  BOOST_REQUIRE(commits.size() == 1u);
  BOOST_TEST((commits[0].request == id));
  BOOST_TEST(commits[0].turn == 1u);
  BOOST_TEST(commits[0].position == 3u);
  BOOST_TEST(commits[0].token == 42);
  BOOST_TEST(commits[0].model.value == 0u);
  BOOST_TEST(commits[0].score.value == 0.25f);
  BOOST_TEST((commits[0].finish == finish_reason::none));
  BOOST_TEST(b.fx.handoffs.empty());
  BOOST_TEST(b.fx.park.empty());

  BOOST_REQUIRE(b.script->asked.size() == 1u);
  BOOST_TEST(b.script->asked[0].position == 3u);
  BOOST_TEST(b.script->asked[0].prompt_tokens == 3u);
  BOOST_TEST(b.script->asked[0].proposed == 42);
  BOOST_TEST(b.script->asked[0].seed == 17u);

  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.tokens == tokens{42});
  BOOST_TEST(b.work.in.rows[0].start_position == 3u);
}

BOOST_AUTO_TEST_CASE(commits_of_one_step_go_to_their_home_ranks_in_one_batch_each) {
  scheduler_bench b;
  const std::vector<request_id> ids{make_request_id({0}, 1), make_request_id({2}, 1),
                                    make_request_id({0}, 2)};
  for (auto one : ids)
    b.take(scheduler_bench::admission(one, {1, 2}));
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows.size() == 3u);
  b.finish({10, 11, 12});
  BOOST_TEST(b.fx.commits.size() == 2u);
  BOOST_TEST(b.fx.commits.at({0}).commits.size() == 2u);
  BOOST_TEST(b.fx.commits.at({2}).commits.size() == 1u);
  for (const auto& [home, batch] : b.fx.commits)
    BOOST_TEST(valid(batch));
}

BOOST_AUTO_TEST_CASE(a_turn_is_given_away_with_or_without_the_proposal) {
  struct row {
    route_action action;
    tokens committed;
    tokens sent;
    bool carries_score;
  };
  const std::vector<row> rows{
      {route_action::go_drop, {}, {5, 6, 7, 42}, true},
      {route_action::go_keep, {43}, {5, 6, 7, 42, 43}, false},
  };
  for (const auto& r : rows) {
    scheduler_bench b;
    b.take(scheduler_bench::admission(id, {5, 6, 7}));
    b.step(42, go(route_action::stay, 0, 0.1f));
    b.step(43, go(r.action, 1, 0.9f));
    const auto commits = b.commits();
    BOOST_REQUIRE(commits.size() == r.committed.size());
    for (std::size_t i = 0; i < commits.size(); ++i) {
      BOOST_TEST(commits[i].token == r.committed[i]);
      BOOST_TEST(commits[i].score.value == 0.9f);
      BOOST_TEST(commits[i].turn == 1u);
    }
    BOOST_REQUIRE(b.fx.handoffs.size() == 1u);
    const auto& x = b.fx.handoffs[0];
    BOOST_TEST(valid(x));
    BOOST_TEST((x.request == id));
    BOOST_TEST(x.turn == 2u);
    BOOST_TEST((x.from == replica(0)));
    BOOST_TEST((x.to == replica(1)));
    BOOST_TEST(x.offset == 0u);
    BOOST_TEST(x.tokens == r.sent);
    BOOST_TEST(x.kv_tokens == (std::vector<std::uint32_t>{4, 0, 0}));
    BOOST_TEST(std::isnan(x.position_score.value) == !r.carries_score);
    if (r.carries_score)
      BOOST_TEST(x.position_score.value == 0.9f);
    BOOST_TEST(x.spec.prompt_tokens == 3u);
    BOOST_TEST(x.spec.max_new_tokens == 100u);
    BOOST_REQUIRE(b.fx.park.size() == 1u);
    BOOST_TEST((b.fx.park[0].request == id));
    BOOST_TEST(!b.start());
    BOOST_TEST(b.state.live_requests() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_turn_that_comes_back_runs_only_what_is_new_and_goes_again_with_a_suffix) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  b.step(42);
  b.step(43, go(route_action::go_drop, 1, 0.9f));
  b.take(scheduler_bench::comeback(id, 3, 4, {50, 51}, {4, 5, 0}));
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.tokens == (tokens{50, 51}));
  BOOST_TEST(b.work.in.rows[0].start_position == 4u);
  BOOST_TEST(b.work.in.rows[0].answered_positions);
  b.finish({44});
  BOOST_REQUIRE(b.commits().size() == 1u);
  BOOST_TEST(b.commits()[0].position == 6u);
  BOOST_TEST(b.commits()[0].turn == 3u);
  b.step(45, go(route_action::go_keep, 1, 0.8f));
  BOOST_REQUIRE(b.fx.handoffs.size() == 1u);
  BOOST_TEST(b.fx.handoffs[0].turn == 4u);
  BOOST_TEST(b.fx.handoffs[0].offset == 5u); // what the peer said it holds
  BOOST_TEST(b.fx.handoffs[0].tokens == (tokens{51, 44, 45}));
  BOOST_TEST(b.fx.handoffs[0].kv_tokens == (std::vector<std::uint32_t>{7, 5, 0}));
}

BOOST_AUTO_TEST_CASE(a_token_that_ends_the_request_is_not_handed_on) {
  struct row {
    const char* what;
    token_id token;
    std::uint32_t max_new_tokens;
    bool ignore_eos;
    route_action action;
    finish_reason finish;
    std::size_t handoffs;
  };
  const std::vector<row> rows{
      {"eos kept", eos, 9, false, route_action::go_keep, finish_reason::stop, 0},
      {"eos, stays", eos, 9, false, route_action::stay, finish_reason::stop, 0},
      {"last of the budget kept", 42, 1, false, route_action::go_keep, finish_reason::length, 0},
      {"eos is the last of the budget", eos, 1, false, route_action::stay, finish_reason::stop, 0},
      {"eos ignored, goes on", eos, 9, true, route_action::go_keep, finish_reason::none, 1},
      {"budget left, goes on", 42, 2, false, route_action::go_keep, finish_reason::none, 1},
  };
  for (const auto& r : rows) {
    BOOST_TEST_CONTEXT(r.what) {
      scheduler_bench b;
      auto first = scheduler_bench::admission(id, {5, 6, 7}, replica(0), r.max_new_tokens);
      first.spec.ignore_eos = r.ignore_eos;
      b.take(std::move(first));
      b.step(r.token, go(r.action, 1, 0.5f));
      BOOST_REQUIRE(b.commits().size() == 1u);
      BOOST_TEST((b.commits()[0].finish == r.finish));
      BOOST_TEST(b.fx.handoffs.size() == r.handoffs);
      BOOST_TEST(b.fx.park.size() == 1u);
      BOOST_TEST(!b.start());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_proposed_end_that_is_dropped_ends_nothing) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  b.step(eos, go(route_action::go_drop, 1, 0.9f));
  BOOST_TEST(b.fx.commits.empty());
  BOOST_REQUIRE(b.fx.handoffs.size() == 1u);
  BOOST_TEST(b.fx.handoffs[0].tokens == (tokens{5, 6, 7}));
  b.take(scheduler_bench::comeback(id, 3, 3, {50}, {3, 3, 0}));
  BOOST_TEST(b.start());
}

BOOST_AUTO_TEST_CASE(a_context_that_is_full_ends_the_request) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, tokens(255, 1)));
  b.step(42, go(route_action::go_keep, 1, 0.5f));
  BOOST_REQUIRE(b.commits().size() == 1u);
  BOOST_TEST((b.commits()[0].finish == finish_reason::length));
  BOOST_TEST(b.fx.handoffs.empty());
}

BOOST_AUTO_TEST_CASE(the_first_score_of_a_position_outlives_two_hops) {
  scheduler_bench a, second({.model = 1}), third({.model = 2});
  a.take(scheduler_bench::admission(id, {5, 6, 7}));
  a.step(42, go(route_action::go_drop, 1, 0.7f));
  BOOST_REQUIRE(a.fx.handoffs.size() == 1u);
  second.take(a.fx.handoffs[0]);
  second.step(43, go(route_action::go_drop, 2, 0.2f));
  BOOST_TEST(second.fx.commits.empty());
  BOOST_REQUIRE(second.fx.handoffs.size() == 1u);
  BOOST_TEST(second.fx.handoffs[0].position_score.value == 0.7f);
  BOOST_TEST(second.fx.handoffs[0].turn == 3u);
  third.take(second.fx.handoffs[0]);
  third.step(44, go(route_action::go_keep, 0, no_score));
  BOOST_REQUIRE(third.commits().size() == 1u);
  BOOST_TEST(third.commits()[0].score.value == 0.7f);
  BOOST_TEST(third.commits()[0].model.value == 2u);
  BOOST_REQUIRE(third.fx.handoffs.size() == 1u);
  const auto& back = third.fx.handoffs[0];
  BOOST_TEST((back.to == replica(0)));
  BOOST_TEST(back.turn == 4u);
  BOOST_TEST(back.kv_tokens == (std::vector<std::uint32_t>{3, 3, 3}));
  BOOST_TEST(back.offset == 3u);
  BOOST_TEST(std::isnan(back.position_score.value));

  // The next position starts with a score of its own.
  a.take(back);
  a.step(45, go(route_action::stay, 0, 0.1f));
  BOOST_REQUIRE(a.commits().size() == 1u);
  BOOST_TEST(a.commits()[0].position == 4u);
  BOOST_TEST(a.commits()[0].score.value == 0.1f);
}

BOOST_AUTO_TEST_CASE(a_turn_that_comes_back_with_nothing_new_proposes_again) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  b.step(42);
  b.step(43, go(route_action::go_drop, 1, 0.9f));
  b.take(scheduler_bench::comeback(id, 3, 3, {42}, {4, 4, 0}));
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].start_position == 3u);
  BOOST_TEST(b.work.in.rows[0].token_count == 1u);
  BOOST_TEST(b.work.in.rows[0].answered_positions);
  b.finish({44});
  BOOST_REQUIRE(b.commits().size() == 1u);
  BOOST_TEST(b.commits()[0].position == 4u);
  b.release(id);
  BOOST_REQUIRE(b.fx.released_requests.size() == 1u);
  const auto& done = b.fx.released_requests[0];
  BOOST_TEST(done.computed_tokens == done.kv_tokens + done.recomputed_tokens);
}

BOOST_AUTO_TEST_CASE(the_state_of_a_method_travels_with_the_turn) {
  scheduler_bench a, second({.model = 1});
  auto first = scheduler_bench::admission(id, {5, 6, 7});
  first.state.set(std::uint64_t{77});
  a.take(std::move(first));
  a.step(42, go(route_action::go_drop, 1, 0.7f));
  BOOST_TEST(a.fx.handoffs.at(0).state.get<std::uint64_t>() == 77u);
  second.take(a.fx.handoffs[0]);
  second.step(43, go(route_action::go_keep, 0, no_score));
  BOOST_TEST(second.fx.handoffs.at(0).state.get<std::uint64_t>() == 77u);
}
