#include <boost/test/unit_test.hpp>

#include <cmath>

#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

const request_id id = make_request_id({0}, 1);

/// Every kind of transition that can leave an event.
void visit_all(scheduler_bench& b, trace_batch& all) {
  const auto note = [&] {
    const auto& t = b.fx.trace;
    all.tokens.insert(all.tokens.end(), t.tokens.begin(), t.tokens.end());
    all.handoffs.insert(all.handoffs.end(), t.handoffs.begin(), t.handoffs.end());
    all.steps.insert(all.steps.end(), t.steps.begin(), t.steps.end());
    b.fx = {};
  };
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  note();
  b.step(42, {route_action::stay, {0}, 0.1f});
  note();
  b.step(43, {route_action::go_drop, {1}, 0.9f});
  note();
  b.state.on_gap({id, 2, replica(1), replica(0), 2}, b.now_us, b.fx);
  note();
  b.take(scheduler_bench::comeback(id, 3, 4, {50}, {4, 4, 0}));
  note();
  b.step(44, {route_action::go_keep, {1}, 0.8f});
  note();
}

} // namespace

BOOST_AUTO_TEST_CASE(nothing_is_recorded_unless_a_trace_was_asked_for) {
  scheduler_bench b;
  trace_batch all;
  visit_all(b, all);
  BOOST_TEST(all.empty());
}

BOOST_AUTO_TEST_CASE(every_commit_handoff_and_step_leaves_one_event) {
  scheduler_bench b({.trace = true});
  trace_batch all;
  visit_all(b, all);

  BOOST_REQUIRE(all.tokens.size() == 2u);
  BOOST_TEST(all.tokens[0].request == id.value);
  BOOST_TEST(all.tokens[0].position == 3u);
  BOOST_TEST(all.tokens[0].token == 42);
  BOOST_TEST(all.tokens[0].score == 0.1f);
  BOOST_TEST(all.tokens[0].turn == 1u);
  BOOST_TEST(all.tokens[1].position == 5u);
  BOOST_TEST(all.tokens[1].token == 44);
  BOOST_TEST(all.tokens[1].turn == 3u);

  struct row {
    handoff_side side;
    turn_number turn;
    std::uint32_t position, offset, tokens;
    std::uint16_t from_model, to_model, kept;
  };
  const std::vector<row> rows{
      {handoff_side::received, 1, 3, 0, 3, 0, 0, 0}, // admission
      {handoff_side::sent, 2, 4, 0, 4, 0, 1, 0},     // dropped
      {handoff_side::sent, 2, 4, 2, 2, 0, 1, 0},     // the gap filled
      {handoff_side::received, 3, 5, 4, 1, 1, 0, 0}, // back
      {handoff_side::sent, 4, 6, 4, 2, 0, 1, 1},     // kept
  };
  BOOST_REQUIRE(all.handoffs.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    BOOST_TEST_CONTEXT("event " << i) {
      const auto& got = all.handoffs[i];
      BOOST_TEST((got.side == rows[i].side));
      BOOST_TEST(got.request == id.value);
      BOOST_TEST(got.turn == rows[i].turn);
      BOOST_TEST(got.position == rows[i].position);
      BOOST_TEST(got.offset == rows[i].offset);
      BOOST_TEST(got.tokens == rows[i].tokens);
      BOOST_TEST(got.from_model == rows[i].from_model);
      BOOST_TEST(got.to_model == rows[i].to_model);
      BOOST_TEST(got.kept == rows[i].kept);
    }
  }
  BOOST_TEST(std::isnan(all.handoffs[0].score));
  BOOST_TEST(all.handoffs[1].score == 0.9f);
  BOOST_TEST(all.steps.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_step_event_counts_its_rows_and_times_each_stage) {
  scheduler_bench b({.limits = {8, 8}, .trace = true});
  b.now_us = 100;
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  b.now_us = 110;
  b.take(scheduler_bench::admission(make_request_id({0}, 2), std::vector<token_id>(9, 1)));
  b.now_us = 130;
  lease_grant grant;
  BOOST_REQUIRE(b.plan(grant));
  b.now_us = 135;
  BOOST_REQUIRE(b.state.commit_plan(grant, b.now_us, b.work.in));
  b.work.sent_us = 136;
  b.work.out.step_us = 200;
  b.now_us = 346;
  b.finish({42, -1});
  b.state.stamp_route_time(b.fx, 350);
  BOOST_REQUIRE(b.fx.trace.steps.size() == 1u);
  const auto& e = b.fx.trace.steps[0];
  BOOST_TEST(e.time_us == 346u);
  BOOST_TEST(e.model == 0u);
  BOOST_TEST(e.rows == 2u);
  BOOST_TEST(e.proposing_rows == 1u); // the other is a chunk
  BOOST_TEST(e.tokens == 8u);
  BOOST_TEST(e.prefill_tokens == 8u);
  BOOST_TEST(e.wait_us == 30u);
  BOOST_TEST(e.plan_us == 5u);
  BOOST_TEST(e.turnaround_us == 210u);
  BOOST_TEST(e.step_us == 200u);
  BOOST_TEST(e.route_us == 4u);
}

BOOST_AUTO_TEST_CASE(a_decode_row_counts_no_prefill) {
  scheduler_bench b({.trace = true});
  b.take(scheduler_bench::admission(id, {5, 6, 7}));
  b.step(42);
  BOOST_TEST(b.fx.trace.steps.at(0).prefill_tokens == 3u);
  b.step(43);
  BOOST_TEST(b.fx.trace.steps.at(0).tokens == 1u);
  BOOST_TEST(b.fx.trace.steps.at(0).prefill_tokens == 0u);
}
