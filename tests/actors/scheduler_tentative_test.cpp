#include <boost/test/unit_test.hpp>

#include "tests/actors/scheduler_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

const request_id id = make_request_id({0}, 1);

route_decision tentative(route_action action) {
  route_decision x;
  x.action = action;
  x.target = {1};
  return x;
}

/// What model 0 sends after drafting 21, 22 behind the prompt 1, 2, 3.
handoff drafts(turn_number turn = 2) {
  handoff x = scheduler_bench::comeback(id, turn, 0, {1, 2, 3, 21, 22}, {4, 0});
  x.from = replica(0);
  x.to = replica(1);
  x.tentative = {{{0}, {-0.1f}, {}}, {{0}, {-0.2f}, {}}};
  return x;
}

struct judge_bench : scheduler_bench {
  judge_bench() : scheduler_bench({.model = 1}) {}

  /// The answers at the positions of the two drafts and after them.
  void judge(std::uint32_t accepts, std::vector<token_id> own) {
    script->accepts_tokens = accepts;
    script->decisions.push_back({route_action::go_keep, {0}, no_score});
    take(drafts());
    BOOST_REQUIRE(start());
    BOOST_REQUIRE(work.in.rows.size() == 1u);
    BOOST_TEST(work.in.rows[0].answered_positions == 3u);
    finish_row(std::move(own));
  }

  std::vector<token_id> committed() const {
    std::vector<token_id> out;
    const auto all = commits();
    for (const auto& x : all)
      out.push_back(x.token);
    return out;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(tentative_tokens_are_run_on_but_told_to_nobody) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, {1, 2, 3}));
  b.step(21, tentative(route_action::stay_tentative));
  BOOST_TEST(b.commits().empty());
  BOOST_TEST(b.fx.handoffs.empty());
  b.step(22, tentative(route_action::go_tentative));
  BOOST_TEST(b.script->asked.back().tentative_tokens == 1u);
  BOOST_TEST(b.script->asked.back().position == 4u);
  BOOST_TEST(b.commits().empty());
  BOOST_REQUIRE(b.fx.handoffs.size() == 1u);
  const auto& x = b.fx.handoffs[0];
  BOOST_TEST(x.tokens == (std::vector<token_id>{1, 2, 3, 21, 22}));
  BOOST_TEST(x.tentative.size() == 2u);
  BOOST_TEST(x.kv_tokens[0] == 4u);
}

BOOST_AUTO_TEST_CASE(all_some_or_none_of_the_drafts_are_accepted) {
  struct row {
    std::uint32_t accepts;
    std::vector<token_id> committed;
    std::uint32_t rolled_back, kv_tokens;
  };
  for (const auto& r : {row{2, {21, 22, 9}, 0, 5}, row{1, {21, 8}, 1, 4}, row{0, {7}, 2, 3}}) {
    judge_bench b;
    b.judge(r.accepts, {7, 8, 9});
    BOOST_TEST(b.script->shown == (std::vector<token_id>{7, 8, 9}));
    BOOST_TEST(b.committed() == r.committed);
    BOOST_TEST(b.script->rolled_back_tokens == r.rolled_back);
    BOOST_REQUIRE(b.fx.handoffs.size() == 1u);
    const auto& x = b.fx.handoffs[0];
    BOOST_TEST(x.tentative.empty());
    BOOST_TEST(x.kv_tokens[1] == r.kv_tokens);
    // What the drafter holds beyond the accepted part no longer counts, and everything it lacks is
    // shipped.
    BOOST_TEST(x.kv_tokens[0] == std::min(4u, r.kv_tokens));
    BOOST_TEST(x.offset == x.kv_tokens[0]);
    BOOST_TEST(x.tokens.back() == r.committed.back());
    for (const auto& c : b.commits())
      BOOST_TEST(c.model.value == (c.token >= 20 ? 0u : 1u));
  }
}

BOOST_AUTO_TEST_CASE(a_drafter_cuts_its_kv_where_the_judge_disagreed) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, {1, 2, 3}));
  b.step(21, tentative(route_action::stay_tentative));
  b.step(22, tentative(route_action::go_tentative));
  b.take(scheduler_bench::comeback(id, 3, 3, {8}, {3, 3}));
  BOOST_TEST(b.fx.failures.empty());
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].start_position == 3u);
  BOOST_TEST(b.work.in.tokens == (std::vector<token_id>{8}));
}

BOOST_AUTO_TEST_CASE(an_accepted_draft_keeps_the_drafters_kv) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, {1, 2, 3}));
  b.step(21, tentative(route_action::stay_tentative));
  b.step(22, tentative(route_action::go_tentative));
  b.take(scheduler_bench::comeback(id, 3, 4, {22, 9}, {4, 5}));
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].start_position == 4u);
  BOOST_TEST(b.work.in.tokens == (std::vector<token_id>{22, 9}));
}

BOOST_AUTO_TEST_CASE(an_accepted_end_finishes_and_drops_the_drafts_behind_it) {
  judge_bench b;
  b.script->accepts_tokens = 2;
  handoff x = drafts();
  x.tokens[3] = eos;
  b.take(std::move(x));
  BOOST_REQUIRE(b.start());
  b.finish_row({eos, 22, 9});
  BOOST_TEST(b.committed() == (std::vector<token_id>{eos}));
  BOOST_TEST((b.commits().back().finish == finish_reason::stop));
  BOOST_TEST(b.fx.handoffs.empty());
}

BOOST_AUTO_TEST_CASE(a_judged_row_may_be_cut_into_chunks) {
  scheduler_bench b({.model = 1, .limits = {8, 2}});
  b.script->accepts_tokens = 2;
  b.script->decisions.push_back({route_action::go_keep, {0}, no_score});
  b.take(drafts());
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].answered_positions == 0u);
  b.finish({-1});
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].answered_positions == 2u);
  b.finish_row({21, 22});
  BOOST_TEST(b.commits().empty());
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].answered_positions == 1u);
  b.finish_row({9});
  BOOST_TEST(b.script->shown == (std::vector<token_id>{21, 22, 9}));
  BOOST_TEST(b.commits().size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_release_while_drafts_are_judged_gives_everything_back) {
  judge_bench b;
  b.take(drafts());
  BOOST_REQUIRE(b.start());
  b.release(id);
  BOOST_TEST(b.fx.released_requests.empty());
  b.finish_row({7, 8, 9});
  BOOST_TEST(b.fx.released_requests.size() == 1u);
  BOOST_TEST(b.commits().empty());
  BOOST_TEST(b.ledger.free_blocks() == b.ledger.total_blocks());
  b.take(drafts(5));
  BOOST_TEST(b.state.counters().late_handoffs == 1u);
}

BOOST_AUTO_TEST_CASE(a_role_that_breaks_its_contract_fails_its_request_alone) {
  struct row {
    route_decision decision;
    token_id token;
  };
  route_decision nowhere{route_action::go_keep, {9}, no_score};
  for (const auto& r : {row{tentative(route_action::stay_tentative), eos}, row{nowhere, 5}}) {
    scheduler_bench b;
    b.take(scheduler_bench::admission(id, {1, 2, 3}));
    b.step(r.token, r.decision);
    BOOST_TEST(b.fx.failures.size() == 1u);
    BOOST_TEST(b.commits().empty());
  }
}

BOOST_AUTO_TEST_CASE(forced_tokens_are_committed_in_place_of_the_proposal) {
  scheduler_bench b;
  b.take(scheduler_bench::admission(id, {1, 2, 3}));
  static const std::vector<token_id> words{50, 51, 52};
  route_decision forced;
  forced.forced = words;
  b.step(7, forced);
  BOOST_TEST(b.commits().size() == 3u);
  BOOST_TEST(b.commits()[2].token == 52);
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.tokens == words);
}

BOOST_AUTO_TEST_CASE(a_distribution_travels_with_the_turn_and_is_mixed_once) {
  scheduler_bench b({.model = 1});
  handoff x = scheduler_bench::admission(id, {1, 2, 3}, replica(1));
  x.mix.weight.value = 0.5f;
  x.mix.distribution = {{0.25f}, {0.75f}};
  b.take(std::move(x));
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].mix_weight == 0.5f);
  BOOST_TEST(b.work.in.mixes == (std::vector<float>{0.25f, 0.75f}));
  b.finish({4});
  BOOST_REQUIRE(b.start());
  BOOST_TEST(b.work.in.rows[0].mix_weight == 0.0f);
  BOOST_TEST(b.work.in.mixes.empty());
}
