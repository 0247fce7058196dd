#include <boost/test/unit_test.hpp>

#include <numeric>

#include "runtime/policy/turn_epoch.hpp"
#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

std::vector<token_id> words(std::size_t count) {
  std::vector<token_id> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

constexpr request_id one{1};

/// A prompt of 100 tokens, for which the own cache has nothing.
scheduler_bench asked_bench() {
  scheduler_bench b({.keep_prefixes = true, .fetch_min_tokens = 64});
  b.take(scheduler_bench::admission(one, words(100)));
  b.fx = {};
  b.state.on_prefix({one, 0}, b.fx);
  return b;
}

/// The pool's part of a fetch that brings so many tokens.
void bring(scheduler_bench& b, std::uint32_t tokens) {
  const std::uint32_t blocks = tokens / limits::block_tokens;
  b.ledger.reserve(1, blocks);
  const auto all = words(tokens);
  BOOST_TEST(b.ledger.join(1, {one, 1, all, 0, blocks}) == tokens);
  BOOST_TEST(b.ledger.table(one).size() == blocks);
  b.fx = {};
  b.state.on_fetched({one, tokens}, b.fx);
  b.settle();
}

} // namespace

BOOST_AUTO_TEST_CASE(what_the_own_cache_lacks_is_looked_for_elsewhere_if_it_is_enough) {
  struct row {
    std::uint32_t prompt_tokens, cached_tokens, min_tokens;
    bool asks;
  };
  for (const row& x : {row{100, 0, 64, true}, row{100, 16, 64, true}, row{100, 48, 64, false},
                       row{100, 0, 0, false}, row{64, 0, 64, false}, row{65, 0, 64, true}}) {
    scheduler_bench b({.keep_prefixes = true, .fetch_min_tokens = x.min_tokens});
    b.take(scheduler_bench::admission(one, words(x.prompt_tokens)));
    b.fx = {};
    b.state.on_prefix({one, x.cached_tokens}, b.fx);
    BOOST_TEST(b.fx.fetches.size() == (x.asks ? 1u : 0u));
    BOOST_TEST(b.state.fetches() == (x.asks ? 1u : 0u));
    if (!x.asks)
      continue;
    BOOST_TEST(b.fx.fetches[0].have_tokens == x.cached_tokens);
    BOOST_TEST(b.fx.fetches[0].tokens.size() == (x.prompt_tokens - 1) / 16 * 16);
  }
}

BOOST_AUTO_TEST_CASE(a_step_waits_for_the_fetch_and_starts_behind_what_it_brought) {
  auto b = asked_bench();
  BOOST_TEST(!b.start());
  b.take(scheduler_bench::admission({2}, words(10))); // another is not held up
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows.size() == 1u);
  b.finish({7});
  bring(b, 80);
  BOOST_TEST(b.state.fetches() == 0u);
  BOOST_REQUIRE(b.start());
  std::uint32_t start = 0;
  for (const auto& row : b.work.in.rows)
    if (row.request == one)
      start = row.start_position;
  BOOST_TEST(start == 80u);
  b.finish({7, 7});
  b.release(one);
  BOOST_REQUIRE(b.fx.released_requests.size() == 1u);
  const auto& end = b.fx.released_requests[0];
  BOOST_TEST(end.fetched_tokens == 80u);
  BOOST_TEST(end.cached_tokens == 80u);
  BOOST_TEST(end.computed_tokens + end.cached_tokens == end.kv_tokens + end.recomputed_tokens);
}

BOOST_AUTO_TEST_CASE(a_fetch_that_brings_nothing_leaves_the_prompt_to_be_run) {
  auto b = asked_bench();
  b.state.on_fetched({one, 0}, b.fx);
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].start_position == 0u);
}

BOOST_AUTO_TEST_CASE(a_release_waits_for_the_fetch_and_gives_all_back_once) {
  for (const std::uint32_t tokens : {0u, 80u}) {
    auto b = asked_bench();
    b.fx = {};
    b.release(one);
    BOOST_TEST(b.quiet());
    bring(b, tokens);
    BOOST_TEST(b.fx.give_back.size() == 1u);
    BOOST_REQUIRE(b.fx.released_requests.size() == 1u);
    BOOST_TEST(b.fx.released_requests[0].fetched_tokens == tokens);
    BOOST_TEST(b.state.live_requests() == 0u);
    BOOST_TEST(b.ledger.free_blocks() + b.ledger.cached_blocks() == 64u);
    BOOST_TEST(!b.ledger.has_loans());
  }
}

BOOST_AUTO_TEST_CASE(what_is_fetched_for_a_void_turn_is_not_used_and_holds_up_the_next) {
  for (const bool comes_back : {false, true}) {
    auto b = asked_bench();
    b.fx = {};
    b.state.on_recall({one, first_turn(1), replica(0)}, b.fx);
    b.settle();
    const auto again = [&] {
      auto x = scheduler_bench::admission(one, {9, 8, 7}); // nothing of what is fetched is its own
      x.turn = first_turn(1);
      b.take(std::move(x));
    };
    if (comes_back)
      again();
    BOOST_TEST(!b.start());
    bring(b, 80);
    BOOST_TEST(b.state.fetches() == 0u);
    BOOST_TEST(b.ledger.table(one).empty()); // it went back with the turn, into the cache
    BOOST_TEST(b.ledger.cached_blocks() == 5u);
    if (!comes_back)
      again();
    BOOST_REQUIRE(b.start());
    BOOST_TEST(b.work.in.rows[0].start_position == 0u);
    b.finish({4});
    b.release(one);
    BOOST_REQUIRE(b.fx.released_requests.size() == 1u);
    BOOST_TEST(b.fx.released_requests[0].fetched_tokens == 0u);
    BOOST_TEST(b.ledger.free_blocks() + b.ledger.cached_blocks() == 64u);
  }
}

BOOST_AUTO_TEST_CASE(a_release_after_a_recall_waits_for_step_and_fetch_alike) {
  for (const bool step_first : {false, true}) {
    scheduler_bench b({.keep_prefixes = true, .fetch_min_tokens = 64});
    b.take(scheduler_bench::admission(one, words(100)));
    b.state.on_prefix({one, 0}, b.fx);
    b.state.on_fetched({one, 0}, b.fx);
    BOOST_REQUIRE(b.start());
    auto again = scheduler_bench::admission(one, words(100)); // it overtakes its recall
    again.turn = first_turn(1);
    b.take(std::move(again));
    b.state.on_prefix({one, 0}, b.fx);
    BOOST_TEST(b.state.fetches() == 1u);
    b.fx = {};
    b.release(one);
    BOOST_TEST(b.quiet());
    if (step_first)
      b.finish({4});
    else
      b.state.on_fetched({one, 0}, b.fx);
    BOOST_TEST(b.fx.released_requests.empty());
    if (step_first)
      b.state.on_fetched({one, 0}, b.fx);
    else
      b.finish({4});
    b.settle();
    BOOST_TEST(b.fx.released_requests.size() == 1u);
    BOOST_TEST(b.state.live_requests() == 0u);
    BOOST_TEST(b.ledger.free_blocks() + b.ledger.cached_blocks() == 64u);
  }
}

BOOST_AUTO_TEST_CASE(a_fetch_that_ends_after_its_replica_lost_a_shard_gives_all_back) {
  auto b = asked_bench();
  const replica_id self = replica(0);
  b.state.on_replicas_lost({&self, 1}, b.fx);
  b.fx = {};
  b.state.on_fetched({one, 64}, b.fx);
  BOOST_TEST((b.fx.give_back == std::vector<request_id>{one}));
  BOOST_TEST(b.state.fetches() == 0u);
}

BOOST_AUTO_TEST_CASE(a_fetch_is_told_what_a_prefill_takes_here) {
  scheduler_bench b({.keep_prefixes = true, .fetch_min_tokens = 64});
  b.take(scheduler_bench::admission(one, words(100)));
  b.state.on_prefix({one, 0}, b.fx);
  BOOST_REQUIRE(b.fx.fetches.size() == 1u);
  BOOST_TEST(b.fx.fetches[0].computed_us_per_token == 0); // nothing was computed yet
  b.fx = {};
  b.state.on_fetched({one, 0}, b.fx);
  b.work.out.step_us = 500;
  b.step(7); // the prompt, at 5 us a token
  b.work.out.step_us = 900;
  b.step(8); // a decode step says nothing of that
  b.take(scheduler_bench::admission({2}, words(100)));
  b.fx = {};
  b.state.on_prefix({{2}, 0}, b.fx);
  BOOST_REQUIRE(b.fx.fetches.size() == 1u);
  BOOST_TEST(b.fx.fetches[0].computed_us_per_token == 5);
}
