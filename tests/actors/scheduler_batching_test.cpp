#include <boost/test/unit_test.hpp>

#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

request_id id(std::uint64_t n) {
  return make_request_id({0}, n);
}

std::vector<token_id> words(std::size_t count) {
  std::vector<token_id> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(static_cast<token_id>(i % 50));
  return out;
}

/// Takes what the pool's cache has of the request's prompt.
std::uint32_t match(scheduler_bench& b) {
  BOOST_REQUIRE(b.fx.queries.size() == 1u);
  const auto& q = b.fx.queries[0];
  const std::uint32_t tokens = b.ledger.adopt(q.request, q.age, q.tokens, q.tokens_max);
  b.state.on_prefix({q.request, tokens}, b.fx);
  b.fx = {};
  return tokens;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_step_waits_until_enough_requests_wait) {
  scheduler_bench b({.thresholds = {{1, 1, 3}, {}, {}}});
  for (std::uint64_t n : {1, 2, 3})
    b.state.on_announce(id(n));
  b.take(scheduler_bench::admission(id(1), {1}));
  BOOST_TEST(!b.start());
  b.take(scheduler_bench::admission(id(2), {1}));
  BOOST_TEST(!b.start());
  b.take(scheduler_bench::admission(id(3), {1}));
  BOOST_TEST(b.start());
  BOOST_TEST(b.work.in.rows.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_threshold_falls_with_the_live_requests) {
  scheduler_bench b({.thresholds = {{1, 1, 3}, {}, {}}});
  for (std::uint64_t n : {1, 2, 3})
    b.state.on_announce(id(n));
  b.take(scheduler_bench::admission(id(1), {1}));
  BOOST_TEST(!b.start());
  b.release(id(3));
  BOOST_TEST(b.start());
}

BOOST_AUTO_TEST_CASE(thresholds_may_be_set_while_it_runs) {
  scheduler_bench b({.thresholds = {{2}, {}, {}}});
  for (std::uint64_t n : {1, 2, 3})
    b.state.on_announce(id(n));
  b.take(scheduler_bench::admission(id(1), {1}));
  BOOST_TEST(!b.start());
  b.state.set_thresholds({{1}, {}, {}});
  BOOST_TEST(b.start());
}

BOOST_AUTO_TEST_CASE(a_step_that_waits_too_long_starts_and_is_counted) {
  scheduler_bench b({.thresholds = {{2}, {}, {}}, .delay_timeout_us = 500});
  for (std::uint64_t n : {1, 2, 3})
    b.state.on_announce(id(n));
  b.take(scheduler_bench::admission(id(1), {1}));
  BOOST_TEST(!b.start());
  BOOST_TEST(b.state.delayed_until_us().value() == b.now_us + 500);
  b.now_us += 500;
  BOOST_TEST(b.start());
  BOOST_TEST(b.state.counters().delay_timeouts == 1u);
  BOOST_TEST(!b.state.delayed_until_us());
}

BOOST_AUTO_TEST_CASE(an_announcement_after_the_release_counts_nobody) {
  scheduler_bench b({.thresholds = {{1, 2}, {}, {}}});
  b.release(id(9));
  b.state.on_announce(id(9));
  b.state.on_announce(id(1));
  b.take(scheduler_bench::admission(id(1), {1}));
  BOOST_TEST(b.start());
}

BOOST_AUTO_TEST_CASE(a_prompt_that_was_run_before_is_not_run_again) {
  scheduler_bench b({.keep_prefixes = true});
  b.take(scheduler_bench::admission(id(1), words(40)));
  BOOST_TEST(match(b) == 0u);
  b.step(7, {route_action::go_keep, {1}, no_score});
  b.release(id(1));
  b.fx = {};
  b.take(scheduler_bench::admission(id(2), words(40)));
  BOOST_TEST(!b.start()); // its prefix is being looked for
  BOOST_TEST(match(b) == 32u);
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].start_position == 32u);
  BOOST_TEST(b.work.in.tokens.size() == 8u);
  b.finish({7});
  b.release(id(2));
  BOOST_REQUIRE(b.fx.released_requests.size() == 1u);
  const auto& end = b.fx.released_requests[0];
  BOOST_TEST(end.cached_tokens == 32u);
  BOOST_TEST(end.computed_tokens == 8u);
  BOOST_TEST(end.recomputed_tokens == 0u);
  BOOST_TEST(end.kv_tokens == 40u);
}

BOOST_AUTO_TEST_CASE(tokens_that_a_peer_made_serve_from_the_cache_as_well) {
  scheduler_bench b({.keep_prefixes = true});
  b.take(scheduler_bench::admission(id(1), words(10)));
  b.step(7, {route_action::go_drop, {1}, no_score});
  auto back = words(22);
  back.erase(back.begin(), back.begin() + 10);
  b.take(scheduler_bench::comeback(id(1), 3, 10, back, {10, 21}, 10));
  b.step(eos);
  b.release(id(1));
  b.fx = {};
  b.take(scheduler_bench::admission(id(2), words(30)));
  BOOST_TEST(match(b) == 16u);
}

BOOST_AUTO_TEST_CASE(the_whole_prompt_is_never_taken_from_the_cache) {
  scheduler_bench b({.keep_prefixes = true});
  b.take(scheduler_bench::admission(id(1), words(32)));
  match(b);
  b.step(7);
  b.release(id(1));
  b.fx = {};
  b.take(scheduler_bench::admission(id(2), words(32)));
  BOOST_TEST(match(b) == 16u);
}

BOOST_AUTO_TEST_CASE(positions_whose_signals_a_role_reads_are_run_again) {
  role_needs needs{to_set(signal::entropy), {}, 4, 1, false};
  scheduler_bench b({.keep_prefixes = true, .needs = needs});
  b.take(scheduler_bench::admission(id(1), words(34)));
  match(b);
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].answered_positions == 4u);
  b.finish_row({1, 2, 3, 7});
  BOOST_TEST(b.script->asked.back().tail_entropies.size() == 4u);
  // The next step has three of them already.
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].answered_positions == 1u);
  b.finish({8});
  b.release(id(1));
  b.fx = {};
  // 34 tokens: two whole blocks are known, but the last 4 positions must be answered.
  b.take(scheduler_bench::admission(id(2), words(34)));
  BOOST_TEST(match(b) == 16u);
}
