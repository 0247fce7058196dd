#include <boost/test/unit_test.hpp>

#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

const request_id a = make_request_id({0}, 1);
const request_id b = make_request_id({0}, 2);
const request_id c = make_request_id({0}, 3);
using tokens = std::vector<token_id>;

/// Runs the only sequence with the turn through all its chunks, up to the proposal of `token`.
void run_to_proposal(scheduler_bench& x, token_id token, route_decision decision = {}) {
  x.script->decisions.push_back(decision);
  for (bool proposed = false; !proposed;) {
    BOOST_REQUIRE(x.start());
    BOOST_REQUIRE(x.work.in.rows.size() == 1u);
    proposed = x.work.in.rows[0].answered_positions;
    x.finish({token});
  }
}

released let_go(scheduler_bench& x, request_id id) {
  x.fx = {};
  x.release(id);
  BOOST_REQUIRE(x.fx.released_requests.size() == 1u);
  const auto done = x.fx.released_requests[0];
  BOOST_TEST(valid(done));
  BOOST_TEST(done.computed_tokens == done.kv_tokens + done.recomputed_tokens);
  return done;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_long_prompt_runs_in_chunks_and_only_the_last_proposes) {
  scheduler_bench x({.limits = {8, 4}});
  tokens prompt;
  for (token_id t = 0; t < 10; ++t)
    prompt.push_back(t);
  x.take(scheduler_bench::admission(a, prompt));
  struct row {
    std::uint32_t start_position;
    tokens run;
    bool answered_positions;
  };
  const std::vector<row> rows{
      {0, {0, 1, 2, 3}, false}, {4, {4, 5, 6, 7}, false}, {8, {8, 9}, true}};
  for (const auto& r : rows) {
    BOOST_REQUIRE(x.start());
    BOOST_REQUIRE(x.work.in.rows.size() == 1u);
    BOOST_TEST(x.work.in.tokens == r.run);
    BOOST_TEST(x.work.in.rows[0].start_position == r.start_position);
    BOOST_TEST(x.work.in.rows[0].answered_positions == r.answered_positions);
    BOOST_TEST((x.work.in.rows[0].signals != 0) == r.answered_positions);
    x.finish({42});
    BOOST_TEST(x.commits().size() == (r.answered_positions ? 1u : 0u));
  }
  BOOST_TEST(x.script->asked.size() == 1u);
  BOOST_TEST(let_go(x, a).computed_tokens == 10u);
}

BOOST_AUTO_TEST_CASE(a_release_between_chunks_reports_what_was_run) {
  scheduler_bench x({.limits = {8, 4}});
  x.take(scheduler_bench::admission(a, tokens(10, 1)));
  BOOST_REQUIRE(x.start());
  x.finish({});
  BOOST_TEST(let_go(x, a).kv_tokens == 4u);
  BOOST_TEST(x.ledger.free_blocks() == x.ledger.total_blocks());
}

BOOST_AUTO_TEST_CASE(rows_name_their_tokens_and_blocks_also_beside_a_refused_one) {
  scheduler_bench x({.blocks = 3});
  x.take(scheduler_bench::admission(a, tokens(3, 1)));
  x.take(scheduler_bench::admission(b, tokens(40, 2))); // three blocks: none are left of that many
  x.take(scheduler_bench::admission(c, tokens(20, 3)));
  BOOST_REQUIRE(x.start());
  const auto& in = x.work.in;
  BOOST_REQUIRE(in.rows.size() == 2u);
  const std::vector<request_id> served{a, c};
  for (std::size_t i = 0; i < served.size(); ++i) {
    const auto& row = in.rows[i];
    BOOST_TEST((row.request == served[i]));
    const auto table = x.ledger.table(served[i]);
    BOOST_TEST(row.block_count == table.size());
    BOOST_TEST(std::equal(table.begin(), table.end(), in.block_tables.begin() + row.block_offset));
    for (std::uint32_t t = 0; t < row.token_count; ++t)
      BOOST_TEST(in.tokens.at(row.token_offset + t) == (i == 0 ? 1 : 3));
  }
  BOOST_TEST(in.rows[1].token_count == 20u);
  x.finish({42, 43});
  BOOST_TEST(x.commits().size() == 2u);
}

BOOST_AUTO_TEST_CASE(an_evicted_row_leaves_the_very_same_plan_and_runs_again_later) {
  scheduler_bench x({.blocks = 2});
  x.take(scheduler_bench::admission(a, tokens(16, 1)));
  x.take(scheduler_bench::admission(b, tokens(16, 2)));
  BOOST_REQUIRE(x.start());
  BOOST_REQUIRE(x.work.in.rows.size() == 2u);
  x.finish({40, 41});

  // Both want a second block; the older one takes the younger one's first.
  BOOST_REQUIRE(x.start());
  BOOST_REQUIRE(x.work.in.rows.size() == 1u);
  BOOST_TEST((x.work.in.rows[0].request == a));
  BOOST_TEST(x.state.counters().evictions == 1u);
  x.finish({42});
  x.step(eos); // the younger is refused as long as the older runs

  BOOST_REQUIRE(x.start());
  BOOST_REQUIRE(x.work.in.rows.size() == 1u);
  BOOST_TEST((x.work.in.rows[0].request == b));
  BOOST_TEST(x.work.in.rows[0].start_position == 0u);
  BOOST_TEST(x.work.in.rows[0].token_count == 17u);
  BOOST_TEST(x.work.in.tokens.back() == 41);
  x.finish({44});
  BOOST_REQUIRE(x.commits().size() == 1u);
  BOOST_TEST(x.commits()[0].position == 17u);

  const auto older = let_go(x, a), younger = let_go(x, b);
  BOOST_TEST(older.computed_tokens == 18u);
  BOOST_TEST(older.recomputed_tokens == 0u);
  BOOST_TEST(younger.computed_tokens == 33u);
  BOOST_TEST(younger.recomputed_tokens == 16u);
  BOOST_TEST(younger.kv_tokens == 17u);
  BOOST_TEST(x.ledger.free_blocks() == 2u);
}

BOOST_AUTO_TEST_CASE(a_parked_request_whose_kv_was_evicted_runs_all_again_when_its_turn_comes) {
  for (const std::uint32_t chunk_tokens : {512u, 10u, 1u}) {
    scheduler_bench x({.blocks = 2, .limits = {8, chunk_tokens}});
    x.take(scheduler_bench::admission(a, tokens(16, 1)));
    run_to_proposal(x, 40, {route_action::go_drop, {1}, 0.9f});
    x.take(scheduler_bench::admission(b, tokens(20, 2)));
    run_to_proposal(x, eos);
    BOOST_TEST(x.state.counters().evictions == 1u);

    x.take(scheduler_bench::comeback(a, 3, 16, {50}, {16, 16, 0}, 16));
    x.fx = {};
    BOOST_REQUIRE(x.start());
    BOOST_TEST(x.work.in.rows[0].start_position == 0u);
    BOOST_TEST(x.work.in.rows[0].token_count == std::min(17u, chunk_tokens));
    const bool proposed = x.work.in.rows[0].answered_positions;
    x.finish({51});
    if (!proposed)
      run_to_proposal(x, 51);
    BOOST_REQUIRE(x.commits().size() == 1u);
    BOOST_TEST(x.commits()[0].position == 17u);

    const auto done = let_go(x, a);
    BOOST_TEST(done.computed_tokens == 33u);
    BOOST_TEST(done.recomputed_tokens == 16u);
    BOOST_TEST(done.kv_tokens == 17u);
    let_go(x, b);
    BOOST_TEST(x.ledger.free_blocks() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(a_request_whose_kv_is_given_up_at_handoffs_runs_all_again) {
  scheduler_bench x({.blocks = 2, .drop_kv = true});
  x.take(scheduler_bench::admission(a, tokens(16, 1)));
  run_to_proposal(x, 40, {route_action::go_drop, {1}, 0.9f});
  BOOST_TEST(x.ledger.free_blocks() == 2u);
  x.take(scheduler_bench::comeback(a, 3, 16, {50}, {16, 16, 0}, 16));
  x.fx = {};
  BOOST_REQUIRE(x.start());
  BOOST_TEST(x.work.in.rows[0].start_position == 0u);
  BOOST_TEST(x.work.in.rows[0].token_count == 17u);
  x.finish({51});
  BOOST_REQUIRE(x.commits().size() == 1u);
  BOOST_TEST(x.commits()[0].position == 17u);
  const auto done = let_go(x, a);
  BOOST_TEST(done.computed_tokens == 33u);
  BOOST_TEST(done.recomputed_tokens == 16u);
  BOOST_TEST(x.state.counters().evictions == 0u);
}

BOOST_AUTO_TEST_CASE(a_request_that_was_not_evicted_computes_each_position_once) {
  scheduler_bench x;
  x.take(scheduler_bench::admission(a, tokens(3, 1)));
  x.step(42);
  x.step(43, {route_action::go_drop, {1}, 0.9f});
  x.take(scheduler_bench::comeback(a, 3, 4, {50, 51}, {4, 5, 0}));
  x.step(44, {route_action::go_keep, {1}, 0.9f});
  const auto done = let_go(x, a);
  BOOST_TEST(done.computed_tokens == 6u);
  BOOST_TEST(done.recomputed_tokens == 0u);
  BOOST_TEST(done.kv_tokens == 6u);
}

BOOST_AUTO_TEST_CASE(a_request_that_lost_its_blocks_answers_its_whole_window_again) {
  scheduler_bench x({.blocks = 2, .needs = {to_set(signal::heads), {}, 1, 3, false}});
  x.take(scheduler_bench::admission(a, {1, 2, 3}));
  x.step(4);
  x.step(5);
  x.step(6);
  struct row {
    std::uint32_t start_position, tokens, answered, window_start;
  };
  const auto expect = [&](const row& wanted) {
    BOOST_REQUIRE(x.start());
    BOOST_REQUIRE(x.work.in.rows.size() == 1u);
    const auto& row = x.work.in.rows[0];
    BOOST_TEST(row.start_position == wanted.start_position);
    BOOST_TEST(row.token_count == wanted.tokens);
    BOOST_TEST(row.answered_positions == wanted.answered);
    BOOST_TEST(row.window_start_position == wanted.window_start);
  };
  // Decoding on: one position, its window is at hand.
  expect({5, 1, 1, 2});
  x.script->decisions.push_back({route_action::go_drop, {1}});
  x.finish({7});
  // While a peer has the turn, a longer request takes the pool.
  x.take(scheduler_bench::admission(b, tokens(20, 9)));
  BOOST_REQUIRE(x.start());
  x.finish({eos});
  x.release(b);
  x.take(scheduler_bench::comeback(a, 3, 6, {8}, {6, 7, 0}));
  expect({0, 7, 3, 4});
}
