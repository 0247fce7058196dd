#include <boost/test/unit_test.hpp>

#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

const request_id a = make_request_id({0}, 1);
const request_id b = make_request_id({0}, 2);

std::vector<token_id> words(std::size_t count) {
  return std::vector<token_id>(count, 5);
}

/// Steps of one row until the pool is asked again; `limit` if it never is.
int steps_without_lease(scheduler_bench& x, int limit) {
  for (int i = 0; i < limit; ++i) {
    x.step(7);
    if (!x.asked.wants.empty())
      return i;
  }
  return limit;
}

} // namespace

BOOST_AUTO_TEST_CASE(steps_within_the_blocks_a_request_has_ask_for_none) {
  scheduler_bench x;
  x.take(scheduler_bench::admission(a, words(20)));
  x.step(7);
  BOOST_TEST(x.asked.wants.size() == 1u);
  // Position 20 is the next; two blocks and 64 positions of look-ahead end at 96.
  BOOST_TEST(steps_without_lease(x, 90) == 76);
  x.release(a);
  BOOST_TEST(x.ledger.free_blocks() == x.ledger.total_blocks());
}

BOOST_AUTO_TEST_CASE(no_blocks_are_leased_beyond_the_end_of_a_request) {
  scheduler_bench x;
  x.take(scheduler_bench::admission(a, words(20), {}, 15));
  x.step(7);
  BOOST_TEST(x.ledger.table(a).size() == 3u);
}

BOOST_AUTO_TEST_CASE(rows_that_lack_nothing_run_beside_one_that_asks) {
  scheduler_bench x;
  x.take(scheduler_bench::admission(a, words(20)));
  x.step(7);
  x.take(scheduler_bench::admission(b, words(3)));
  BOOST_REQUIRE(x.start());
  BOOST_REQUIRE(x.asked.wants.size() == 1u);
  BOOST_TEST((x.asked.wants[0].request == b));
  BOOST_REQUIRE(x.asked.held.size() == 1u);
  BOOST_TEST((x.asked.held[0].request == a));
  BOOST_TEST(x.asked.held[0].tokens == 21u);
  BOOST_REQUIRE(x.work.in.rows.size() == 2u);
  for (const auto& row : x.work.in.rows) {
    const auto table = x.ledger.table(row.request);
    BOOST_REQUIRE(row.block_count == blocks_for(row.start_position + row.token_count));
    BOOST_TEST(std::equal(table.begin(), table.begin() + row.block_count,
                          x.work.in.block_tables.begin() + row.block_offset));
  }
}

BOOST_AUTO_TEST_CASE(a_turn_that_went_away_gives_its_look_ahead_back_and_asks_when_it_returns) {
  scheduler_bench x;
  x.take(scheduler_bench::admission(a, words(20)));
  BOOST_REQUIRE(x.start());
  BOOST_TEST(x.ledger.table(a).size() == 6u);
  x.script->decisions.push_back({route_action::go_drop, {1}, no_score});
  x.finish({7});
  BOOST_TEST(x.ledger.table(a).size() == 2u);
  x.take(scheduler_bench::comeback(a, 3, 20, {8}, {20, 20}, 20));
  BOOST_REQUIRE(x.start());
  BOOST_TEST(x.asked.wants.size() == 1u); // the pool must know that it is not parked any more
  BOOST_TEST(x.ledger.parked_requests() == 0u);
}

BOOST_AUTO_TEST_CASE(look_ahead_is_taken_back_for_a_request_that_needs_it) {
  scheduler_bench x({.blocks = 8});
  x.take(scheduler_bench::admission(a, words(20)));
  x.step(7);
  BOOST_TEST(x.ledger.table(a).size() == 6u);
  x.take(scheduler_bench::admission(b, words(90)));
  BOOST_REQUIRE(x.start());
  BOOST_REQUIRE(x.work.in.rows.size() == 2u);
  BOOST_TEST(x.work.in.rows[0].block_count == 2u);
  BOOST_TEST(x.ledger.table(a).size() == 2u);
  BOOST_TEST(x.ledger.table(b).size() == 6u);
  BOOST_TEST(x.state.counters().evictions == 0u);
  x.finish({7, 8});
  x.release(b);
  // What it has left reaches to position 32; then it asks, and gets look-ahead again.
  BOOST_TEST(steps_without_lease(x, 90) == 11);
  BOOST_TEST(x.ledger.table(a).size() == 7u);
  BOOST_TEST(x.ledger.consistent());
}

BOOST_AUTO_TEST_CASE(a_row_that_asks_nothing_may_still_lose_its_blocks_to_an_older_one) {
  scheduler_bench x({.blocks = 3});
  x.take(scheduler_bench::admission(a, words(16)));
  x.take(scheduler_bench::admission(b, words(20)));
  BOOST_REQUIRE(x.start());
  x.finish({7, 8});
  BOOST_REQUIRE(x.start()); // the older asks for a second block; the younger has room
  BOOST_REQUIRE(x.asked.wants.size() == 1u);
  BOOST_TEST((x.asked.wants[0].request == a));
  BOOST_REQUIRE(x.work.in.rows.size() == 1u);
  BOOST_TEST((x.work.in.rows[0].request == a));
  BOOST_TEST(x.state.counters().evictions == 1u);
  x.finish({eos});
  x.release(a);
  BOOST_REQUIRE(x.start());
  BOOST_TEST(x.work.in.rows.at(0).start_position == 0u);
  BOOST_TEST(x.work.in.rows[0].token_count == 21u);
}

BOOST_AUTO_TEST_CASE(a_block_that_the_cache_shares_is_not_written_without_a_copy) {
  scheduler_bench x({.keep_prefixes = true});
  x.take(scheduler_bench::admission(a, words(16)));
  x.step(7, {route_action::go_drop, {1}, no_score});
  // The turn brings nothing new: the last position of the prompt runs again.
  x.take(scheduler_bench::comeback(a, 3, 15, {5}, {16, 16}, 16));
  BOOST_REQUIRE(x.start());
  BOOST_REQUIRE(x.work.in.copies.size() == 1u);
  BOOST_TEST(x.work.in.rows.at(0).start_position == 15u);
}
