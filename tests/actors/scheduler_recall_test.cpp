#include <boost/test/unit_test.hpp>

#include "runtime/policy/lost_models.hpp"
#include "runtime/policy/turn_epoch.hpp"
#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr request_id id{9};

/// What a home sends after a loss: all it knows, from itself.
handoff again(std::vector<token_id> tokens, std::uint32_t epoch = 1) {
  handoff x = scheduler_bench::admission(id, std::move(tokens));
  x.turn = first_turn(epoch);
  x.spec.prompt_tokens = 3;
  return x;
}

void call_back(scheduler_bench& b, std::uint32_t epoch = 1) {
  b.fx = {};
  b.state.on_recall({id, first_turn(epoch), replica(0)}, b.fx);
  b.settle();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_recall_takes_the_turn_away_and_keeps_the_kv) {
  scheduler_bench b;
  b.take(b.admission(id, {1, 2, 3}));
  b.step(4);
  call_back(b);
  BOOST_TEST(b.fx.park.size() == 1u);
  BOOST_TEST(!b.start());
  b.take(again({1, 2, 3, 4}));
  BOOST_TEST(b.start());
  BOOST_TEST(b.work.in.rows[0].start_position == 3u); // none of what it held is run again
  b.finish({5});
  BOOST_TEST(b.commits().at(0).position == 4u);
  BOOST_TEST(b.commits().at(0).turn == first_turn(1));
}

BOOST_AUTO_TEST_CASE(results_of_a_step_under_way_at_the_recall_are_dropped) {
  for (const bool comes_back : {false, true}) {
    scheduler_bench b;
    b.take(b.admission(id, {1, 2, 3}));
    BOOST_TEST(b.start());
    call_back(b);
    BOOST_TEST(b.fx.park.empty()); // the step still writes to its blocks
    if (comes_back)
      b.take(again({1, 2, 3}));
    b.finish({4});
    BOOST_TEST(b.commits().empty());
    BOOST_TEST(b.fx.park.size() == (comes_back ? 0u : 1u));
    BOOST_TEST(b.state.counters().dropped_rows == 1u);
    BOOST_TEST(b.start() == comes_back);
    if (!comes_back)
      continue;
    BOOST_TEST(b.work.in.rows[0].start_position == 0u);
    b.finish({7});
    BOOST_TEST(b.commits().at(0).token == 7);
  }
}

BOOST_AUTO_TEST_CASE(a_recall_between_plan_and_grant_leaves_the_row_out) {
  scheduler_bench b;
  b.take(b.admission(id, {1, 2, 3}));
  lease_grant grant;
  BOOST_TEST(b.plan(grant));
  b.state.on_recall({id, first_turn(1), replica(0)}, b.fx);
  BOOST_TEST(!b.state.commit_plan(grant, b.now_us, b.work.in));
  b.settle();
  b.release(id);
  BOOST_TEST(b.ledger.free_blocks() == b.ledger.total_blocks());
}

BOOST_AUTO_TEST_CASE(handoffs_of_void_turns_are_stale_wherever_they_arrive) {
  scheduler_bench b;
  call_back(b); // before it was ever here
  b.take(b.comeback(id, 7, 0, {1, 2, 3, 4}, {}));
  BOOST_TEST(b.state.counters().stale_handoffs == 1u);
  BOOST_TEST(!b.start());
  b.take(again({1, 2, 3}));
  BOOST_TEST(b.start());
  b.finish({4});
  b.take(b.comeback(id, (1u << epoch_turn_bits) - 1, 0, {1, 2, 3, 5}, {}));
  BOOST_TEST(b.state.counters().stale_handoffs == 2u);
  b.fx = {};
  b.release(id);
  BOOST_TEST(b.fx.released_requests.size() == 1u);
}

BOOST_AUTO_TEST_CASE(tokens_of_a_void_turn_may_be_contradicted) {
  scheduler_bench b;
  b.take(b.admission(id, {1, 2, 3}));
  b.step(4);
  b.step(5);
  b.fx = {};
  b.take(again({1, 2, 3, 6})); // the handoff overtook the recall
  BOOST_TEST(b.fx.failures.empty());
  call_back(b);
  BOOST_TEST(b.fx.park.empty()); // nothing new
  BOOST_TEST(b.start());
  BOOST_TEST(b.work.in.rows[0].start_position == 3u);
  BOOST_TEST(b.work.in.rows[0].token_count == 1u);
}

BOOST_AUTO_TEST_CASE(a_late_answer_of_the_prefix_cache_is_not_used) {
  scheduler_bench b({.keep_prefixes = true});
  std::vector<token_id> prompt(40, 5);
  b.take(b.admission(id, prompt));
  BOOST_TEST(b.fx.queries.size() == 1u);
  call_back(b);
  handoff x = again(prompt);
  x.spec.prompt_tokens = 40;
  b.take(std::move(x));
  BOOST_TEST(b.fx.queries.empty()); // one question at a time
  BOOST_TEST(!b.start());
  b.state.on_prefix({id, 32}, b.fx);
  BOOST_TEST(b.start());
  BOOST_TEST(b.work.in.rows[0].start_position == 0u);
}

BOOST_AUTO_TEST_CASE(a_request_stays_where_it_is_if_the_other_model_is_out) {
  scheduler_bench b;
  handoff x = b.admission(id, {1, 2, 3});
  x.spec.replicas = {0, no_replica, 0};
  b.take(std::move(x));
  route_decision away;
  away.action = route_action::go_drop;
  away.target = {1};
  b.step(4, away);
  BOOST_TEST(b.fx.handoffs.empty());
  BOOST_TEST(b.commits().at(0).token == 4);
  away.target = {2};
  b.step(5, away);
  BOOST_TEST(b.fx.handoffs.size() == 1u);
}

BOOST_AUTO_TEST_CASE(homes_learn_where_a_request_could_be_taken_up_if_ranks_may_be_lost) {
  for (const bool resumable : {false, true}) {
    scheduler_bench b({.resumable = resumable});
    b.take(b.admission(id, {1, 2, 3}));
    route_decision keep;
    keep.action = route_action::go_keep;
    keep.target = {1};
    b.step(4, keep);
    const auto& resumes = b.fx.commits.begin()->second.resumes;
    BOOST_REQUIRE(resumes.size() == (resumable ? 1u : 0u));
    if (!resumable)
      continue;
    BOOST_TEST(resumes[0].position == 4u);
    BOOST_TEST((resumes[0].next == model_id{1}));
  }
}

BOOST_AUTO_TEST_CASE(a_replica_that_lost_a_shard_lets_everything_go) {
  scheduler_bench b;
  b.take(b.admission(id, {1, 2, 3}));
  BOOST_TEST(b.start());
  const std::vector<replica_id> lost{replica(1), replica(0)};
  b.state.on_replicas_lost(std::span(lost).first(1), b.fx);
  BOOST_TEST(b.state.live_requests() == 1u);
  b.state.on_replicas_lost(lost, b.fx);
  b.settle();
  BOOST_TEST(b.state.live_requests() == 0u);
  BOOST_TEST(b.ledger.free_blocks() == b.ledger.total_blocks());
  b.finish({4}); // the step may end all the same
  BOOST_TEST(b.quiet());
  b.take(b.admission(request_id{10}, {1, 2, 3}));
  BOOST_TEST(!b.start());
}

BOOST_AUTO_TEST_CASE(what_a_model_may_leave_waiting_is_its_remaining_replicas) {
  scheduler_bench b({.thresholds = {{5}, {}, {}}, .replicas = 2});
  for (std::uint64_t i = 1; i <= 8; ++i)
    b.state.on_announce(request_id{i});
  for (std::uint64_t i = 1; i <= 3; ++i)
    b.take(b.admission(request_id{i}, {1, 2, 3}));
  lease_grant grant;
  const std::vector<replica_id> lost{{{0}, 1}};
  b.state.on_replicas_lost(lost, b.fx);
  BOOST_TEST(!b.plan(grant)); // 5 of its own now, where two would have shared that
  for (std::uint64_t i = 4; i <= 5; ++i)
    b.take(b.admission(request_id{i}, {1, 2, 3}));
  BOOST_TEST(b.plan(grant));
}
