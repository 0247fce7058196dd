#include <boost/test/unit_test.hpp>

#include "runtime/core/limits.hpp"
#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

const request_id id = make_request_id({0}, 1);
using tokens = std::vector<token_id>;

/// Prompt {5, 6, 7}, 42 committed, then the turn given to model 1 as turn 2.
void give_turn_away(scheduler_bench& b) {
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  b.step(42);
  b.step(43, {route_action::go_drop, {1}, 0.9f});
  b.fx = {};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_turn_that_is_not_newer_is_dropped_and_counted) {
  struct row {
    const char* what;
    turn_number turn;
  };
  for (const auto& r : {row{"the same again", 3}, row{"an older one", 2}, row{"the first", 1}}) {
    BOOST_TEST_CONTEXT(r.what) {
      scheduler_bench b;
      give_turn_away(b);
      b.take(scheduler_bench::comeback(id, 3, 4, {50}, {4, 4, 0}));
      BOOST_TEST(b.state.counters().stale_handoffs == 0u);
      b.take(scheduler_bench::comeback(id, r.turn, 4, {51}, {4, 4, 0}));
      BOOST_TEST(b.state.counters().stale_handoffs == 1u);
      BOOST_TEST(b.quiet());
      BOOST_REQUIRE(b.start());
      BOOST_TEST(b.work.in.tokens == tokens{50});
    }
  }
}

BOOST_AUTO_TEST_CASE(a_repeated_admission_does_not_run_twice) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  BOOST_TEST(b.state.counters().stale_handoffs == 1u);
  BOOST_TEST(b.state.live_requests() == 1u);
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows.size() == 1u);
  BOOST_TEST(b.work.in.tokens == (tokens{5, 6, 7}));
}

BOOST_AUTO_TEST_CASE(a_handoff_after_the_release_revives_nothing) {
  scheduler_bench b;
  give_turn_away(b);
  b.release(id);
  BOOST_TEST(b.state.live_requests() == 0u);
  b.fx = {};
  b.take(scheduler_bench::comeback(id, 3, 4, {50}, {4, 4, 0}));
  BOOST_TEST(b.state.counters().late_handoffs == 1u);
  BOOST_TEST(b.quiet());
  BOOST_TEST(b.state.live_requests() == 0u);
  BOOST_TEST(!b.start());
}

BOOST_AUTO_TEST_CASE(a_release_that_overtakes_the_first_handoff_wins) {
  scheduler_bench b;
  b.release(id);
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  BOOST_TEST(b.state.counters().late_handoffs == 1u);
  BOOST_TEST(b.state.live_requests() == 0u);
}

BOOST_AUTO_TEST_CASE(tombstones_are_bounded_and_the_oldest_goes_first) {
  scheduler_bench b;
  const auto nth = [](std::uint64_t n) { return make_request_id({0}, n); };
  for (std::uint64_t n = 0; n < limits::tombstones_max; ++n)
    b.state.on_release(nth(n), b.fx);
  b.state.on_release(nth(1), b.fx); // known: takes no place of another
  b.take(scheduler_bench::admission(nth(0), {5, 6, 7}));
  BOOST_TEST(b.state.counters().late_handoffs == 1u);
  b.state.on_release(nth(limits::tombstones_max), b.fx);
  b.take(scheduler_bench::admission(nth(0), {5, 6, 7}));
  BOOST_TEST(b.state.counters().late_handoffs == 1u);
  BOOST_TEST(b.state.live_requests() == 1u);
  b.take(scheduler_bench::admission(nth(1), {5, 6, 7}));
  b.take(scheduler_bench::admission(nth(limits::tombstones_max), {5, 6, 7}));
  BOOST_TEST(b.state.counters().late_handoffs == 3u);
  BOOST_TEST(b.state.live_requests() == 1u);
}

BOOST_AUTO_TEST_CASE(a_release_in_a_step_takes_effect_when_the_step_ends) {
  scheduler_bench b;
  const request_id other = make_request_id({0}, 2);
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  b.take(scheduler_bench::admission(other, {8, 9}));
  BOOST_REQUIRE(b.start());
  b.release(id);
  BOOST_TEST(b.quiet()); // its blocks are being written
  BOOST_TEST(b.state.live_requests() == 2u);
  b.finish({42, 43});
  BOOST_TEST((b.fx.give_back == std::vector<request_id>{id}));
  BOOST_REQUIRE(b.fx.released_requests.size() == 1u);
  const auto& done = b.fx.released_requests[0];
  BOOST_TEST((done.request == id));
  BOOST_TEST((done.from == replica(0)));
  BOOST_TEST(done.computed_tokens == 3u);
  BOOST_TEST(done.recomputed_tokens == 0u);
  BOOST_TEST(done.kv_tokens == 3u);
  BOOST_REQUIRE(b.commits().size() == 1u);
  BOOST_TEST((b.commits()[0].request == other));
  BOOST_TEST(b.script->asked.size() == 1u);
  BOOST_TEST(b.state.live_requests() == 1u);
}

BOOST_AUTO_TEST_CASE(a_release_between_plan_and_lease_leaves_the_row_out) {
  for (const bool alone : {true, false}) {
    scheduler_bench b;
    const request_id other = make_request_id({0}, 2);
    b.take(scheduler_bench::admission(id, {5, 6, 7}));
    if (!alone)
      b.take(scheduler_bench::admission(other, {8, 9}));
    lease_grant grant;
    BOOST_REQUIRE(b.plan(grant));
    b.release(id);
    BOOST_TEST(b.fx.released_requests.size() == 1u);
    BOOST_TEST(b.state.commit_plan(grant, b.now_us, b.work.in) == !alone);
    if (!alone) {
      BOOST_REQUIRE(b.work.in.rows.size() == 1u);
      const auto& row = b.work.in.rows[0];
      BOOST_TEST((row.request == other));
      BOOST_TEST(row.token_offset == 0u);
      BOOST_TEST(b.work.in.tokens == (tokens{8, 9}));
      const auto table = b.ledger.table(other);
      BOOST_REQUIRE(!table.empty());
      BOOST_TEST(row.block_count == 1u);
      BOOST_TEST(b.work.in.block_tables.at(row.block_offset) == table[0]);
      b.finish({43});
    }
    b.release(other);
    BOOST_TEST(b.ledger.free_blocks() == b.ledger.total_blocks());
  }
}

BOOST_AUTO_TEST_CASE(a_release_of_the_unknown_is_answered_with_nothing) {
  scheduler_bench b;
  b.release(id);
  BOOST_TEST(b.fx.give_back.empty());
  BOOST_REQUIRE(b.fx.released_requests.size() == 1u);
  BOOST_TEST((b.fx.released_requests[0].request == id));
  BOOST_TEST((b.fx.released_requests[0].from == replica(0)));
  BOOST_TEST(b.fx.released_requests[0].computed_tokens == 0u);
  BOOST_TEST(b.fx.released_requests[0].kv_tokens == 0u);
}

BOOST_AUTO_TEST_CASE(a_gap_is_asked_for_and_the_answer_is_taken) {
  struct row {
    const char* what;
    bool known;
    std::uint32_t have_tokens;
  };
  for (const auto& r : {row{"some tokens known", true, 4}, row{"nothing known", false, 0}}) {
    BOOST_TEST_CONTEXT(r.what) {
      scheduler_bench b;
      if (r.known)
        give_turn_away(b);
      b.take(scheduler_bench::comeback(id, 3, 5, {51}, {4, 5, 0}));
      BOOST_REQUIRE(b.fx.gaps.size() == 1u);
      const auto gap = b.fx.gaps[0];
      BOOST_TEST(valid(gap));
      BOOST_TEST((gap.request == id));
      BOOST_TEST(gap.turn == 3u);
      BOOST_TEST((gap.from == replica(0)));
      BOOST_TEST((gap.to == replica(1)));
      BOOST_TEST(gap.have_tokens == r.have_tokens);
      BOOST_TEST(b.state.counters().gaps_asked == 1u);
      BOOST_TEST(!b.start());
      const tokens all{5, 6, 7, 42, 50, 51};
      b.take(scheduler_bench::comeback(id, 3, gap.have_tokens,
                                       {all.begin() + gap.have_tokens, all.end()}, {4, 5, 0}));
      BOOST_REQUIRE(b.start());
      BOOST_TEST(b.work.in.rows[0].start_position + b.work.in.rows[0].token_count == 6u);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_sender_of_a_turn_fills_its_gap) {
  struct row {
    std::uint32_t have_tokens;
    std::uint32_t offset;
    tokens sent;
  };
  const std::vector<row> rows{
      {0, 0, {5, 6, 7, 42}},
      {2, 2, {7, 42}},
      {4, 3, {42}}, // never empty
      {9, 3, {42}},
  };
  for (const auto& r : rows) {
    scheduler_bench b;
    give_turn_away(b);
    b.state.on_gap({id, 2, replica(1), replica(0), r.have_tokens}, b.now_us, b.fx);
    BOOST_REQUIRE(b.fx.handoffs.size() == 1u);
    const auto& x = b.fx.handoffs[0];
    BOOST_TEST(valid(x));
    BOOST_TEST(x.turn == 2u);
    BOOST_TEST((x.to == replica(1)));
    BOOST_TEST(x.offset == r.offset);
    BOOST_TEST(x.tokens == r.sent);
    BOOST_TEST(x.position_score.value == 0.9f);
  }
}

BOOST_AUTO_TEST_CASE(a_gap_that_the_turn_has_left_behind_is_ignored) {
  struct row {
    const char* what;
    request_id request;
    turn_number turn;
    replica_id from;
    bool turn_is_back;
  };
  const std::vector<row> rows{
      {"another turn", id, 4, replica(1), false},
      {"a replica that was sent nothing", id, 2, replica(2), false},
      {"an unknown request", make_request_id({0}, 9), 2, replica(1), false},
      {"the turn is back", id, 2, replica(1), true},
  };
  for (const auto& r : rows) {
    BOOST_TEST_CONTEXT(r.what) {
      scheduler_bench b;
      give_turn_away(b);
      if (r.turn_is_back)
        b.take(scheduler_bench::comeback(id, 3, 4, {50}, {4, 4, 0}));
      b.fx = {};
      b.state.on_gap({r.request, r.turn, r.from, replica(0), 0}, b.now_us, b.fx);
      BOOST_TEST(b.quiet());
      BOOST_TEST(b.state.counters().stale_handoffs == 1u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_newer_turn_for_who_has_the_turn_fails_the_request) {
  for (const bool in_step : {false, true}) {
    scheduler_bench b;
    b.take(scheduler_bench::admission(id, {5, 6, 7}));
    if (in_step)
      BOOST_REQUIRE(b.start());
    b.take(scheduler_bench::comeback(id, 2, 3, {42}, {0, 0, 0}));
    BOOST_REQUIRE(b.fx.failures.size() == 1u);
    BOOST_TEST((b.fx.failures[0].request == id));
    BOOST_TEST((b.fx.failures[0].code == errc::mismatch));
    if (in_step)
      b.finish({50});
    b.release(id);
    BOOST_TEST(b.ledger.free_blocks() == b.ledger.total_blocks());
  }
}

BOOST_AUTO_TEST_CASE(a_handoff_that_contradicts_committed_tokens_fails_its_request_alone) {
  scheduler_bench b;
  const request_id other = make_request_id({0}, 2);
  give_turn_away(b);
  b.take(scheduler_bench::admission(other, {8, 9}));
  b.take(scheduler_bench::comeback(id, 3, 3, {41, 50}, {4, 4, 0}));
  BOOST_REQUIRE(b.fx.failures.size() == 1u);
  BOOST_TEST(valid(b.fx.failures[0]));
  BOOST_TEST((b.fx.failures[0].request == id));
  BOOST_TEST((b.fx.failures[0].code == errc::mismatch));
  BOOST_TEST(b.fx.failures[0].message.find("turn 3") != std::string::npos);
  BOOST_REQUIRE(b.start());
  BOOST_REQUIRE(b.work.in.rows.size() == 1u);
  BOOST_TEST((b.work.in.rows[0].request == other));
  b.finish({44});
  b.release(id);
  BOOST_TEST(b.fx.released_requests.size() == 1u);
  b.release(other);
  BOOST_TEST(b.ledger.free_blocks() == b.ledger.total_blocks());
}
