#include <boost/test/unit_test.hpp>

#include <cmath>

#include "actors/planner_state.hpp"
#include "actors/step_statistics.hpp"

using namespace tokenrouter;

namespace {

planner_config two_models() {
  planner_config config;
  config.models = 2;
  config.automatic = {true, true};
  config.configured = {{}, {}};
  return config;
}

/// R2R with a share of 0.35 as the replicas of both models would report it: steps of `first_us`
/// plus `row_us` for each further row.
void report(planner_state& planner, std::uint64_t small_us, std::uint64_t large_us,
            std::uint64_t row_us, std::uint32_t live) {
  replica_report small, large;
  small.from = {{0}, 0};
  large.from = {{1}, 0};
  for (std::uint64_t rows = 1; rows <= 8; ++rows) {
    small.steps.push_back({20, 20 * (small_us + row_us * (rows - 1))});
    large.steps.push_back({20, 20 * (large_us + row_us * (rows - 1))});
  }
  small.moves = {650, 350};
  small.committed_tokens = {650, 0};
  large.moves = {350, 0};
  large.committed_tokens = {350, 0};
  small.live_requests_max = large.live_requests_max = live;
  planner.add(small);
  planner.add(large);
}

} // namespace

BOOST_AUTO_TEST_CASE(what_replicas_measure_becomes_a_routing_model) {
  planner_state planner(two_models());
  BOOST_TEST(!planner.measured());
  report(planner, 6000, 27900, 100, 8);
  const auto model = planner.measured();
  BOOST_REQUIRE(model.has_value());
  BOOST_TEST(std::abs(model->latencies_ms[0] - 6.0) < 1e-6);
  BOOST_TEST(std::abs(model->latencies_ms[1] - 27.9) < 1e-6);
  BOOST_TEST(std::abs(model->row_latencies_ms[1] - 0.1) < 1e-6);
  BOOST_TEST(std::abs(model->routing[0][1] - 0.35) < 1e-9);
  BOOST_TEST(model->routing[1][0] == 1.0);
  BOOST_TEST(model->committed_tokens[0][1] == 0.0);
  BOOST_TEST(model->committed_tokens[1][0] == 1.0);
}

BOOST_AUTO_TEST_CASE(thresholds_follow_and_can_never_stop_all_models) {
  planner_state planner(two_models());
  report(planner, 6000, 27900, 0, 8);
  const auto lists = planner.plan();
  BOOST_REQUIRE(lists.has_value());
  BOOST_TEST((*lists)[0].size() == 8u);
  for (std::size_t n = 1; n <= 8; ++n)
    BOOST_TEST((*lists)[0][n - 1] - 1 + (*lists)[1][n - 1] - 1 < n);
  // The published optimum for N = 4 and the one computed for N = 8.
  BOOST_TEST((*lists)[1][3] == 3u);
  BOOST_TEST((*lists)[1][7] == 5u);
  BOOST_TEST((*lists)[0][7] == 1u);
}

BOOST_AUTO_TEST_CASE(the_same_measurements_are_not_planned_twice) {
  planner_state planner(two_models());
  report(planner, 6000, 27900, 0, 4);
  BOOST_TEST(planner.plan().has_value());
  report(planner, 6000, 27900, 0, 4);
  BOOST_TEST(!planner.plan());
  report(planner, 6000, 27900, 0, 6); // more requests live at a time
  BOOST_TEST(planner.plan().has_value());
  for (int i = 0; i < 6; ++i)
    report(planner, 6000, 60000, 0, 6); // the large model has slowed down
  BOOST_TEST(planner.plan().has_value());
}

BOOST_AUTO_TEST_CASE(a_model_with_thresholds_of_its_own_keeps_them) {
  auto config = two_models();
  config.automatic = {false, true};
  config.configured = {{2, 2}, {}};
  planner_state planner(config);
  report(planner, 6000, 27900, 0, 4);
  const auto lists = planner.plan();
  BOOST_REQUIRE(lists.has_value());
  BOOST_TEST((*lists)[0] == (batching_thresholds{2, 2}), boost::test_tools::per_element());
  BOOST_TEST((*lists)[1].size() == 4u);
}

BOOST_AUTO_TEST_CASE(replicas_report_every_so_many_decode_steps_and_early_at_first) {
  step_statistics statistics({{1}, 2}, 3);
  for (const std::uint32_t steps : {16u, 32u, 64u, 128u, 128u}) {
    for (std::uint32_t i = 1; i < steps; ++i) {
      statistics.note_step(2, 2, 500);
      statistics.note_step(2, 100, 90000); // a prefill
      statistics.note_move({0}, 1);
      BOOST_TEST(!statistics.take_report(3).has_value());
    }
    statistics.note_step(1, 1, 300);
    const auto report = statistics.take_report(2);
    BOOST_REQUIRE(report.has_value());
    BOOST_TEST((report->from == replica_id{{1}, 2}));
    BOOST_TEST(report->steps.size() == 2u);
    BOOST_TEST(report->steps[1].count == steps - 1);
    BOOST_TEST(report->steps[1].total_us == (steps - 1) * 500u);
    BOOST_TEST(report->moves[0] == steps - 1);
    BOOST_TEST(report->committed_tokens[0] == steps - 1);
    BOOST_TEST(report->live_requests_max == 3u);
    BOOST_TEST(!statistics.take_report(2).has_value());
  }
}

BOOST_AUTO_TEST_CASE(the_first_reports_are_enough_for_a_plan_that_later_ones_correct) {
  planner_state planner(two_models());
  const auto report_of = [](std::uint16_t model, std::uint64_t steps, std::uint64_t step_us,
                            std::vector<std::uint64_t> moves) {
    replica_report x;
    x.from = {{model}, 0};
    x.steps.assign(4, {steps / 4, steps / 4 * step_us});
    x.committed_tokens = moves;
    x.moves = std::move(moves);
    x.live_requests_max = 8;
    return x;
  };
  planner.add(report_of(0, 16, 1000, {30, 34}));
  BOOST_TEST(!planner.plan().has_value()); // nothing is known of the large model
  planner.add(report_of(1, 16, 20000, {64, 0}));
  const auto first = planner.plan();
  BOOST_REQUIRE(first.has_value());
  BOOST_TEST((*first)[1][7] > 1u);
  planner.add(report_of(0, 128, 1000, {350, 150}));
  BOOST_TEST(planner.plan().has_value());
}
