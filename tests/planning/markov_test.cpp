#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "runtime/planning/batching_chain.hpp"
#include "runtime/planning/markov.hpp"
#include "runtime/planning/stationary.hpp"

using namespace tokenrouter;

namespace {

using thresholds = std::vector<std::uint32_t>;

routing_model r2r(double share, double small_ms = 6.0, double large_ms = 27.9) {
  routing_model model;
  model.latencies_ms = {small_ms, large_ms};
  preset_parameters parameters;
  parameters.share = share;
  BOOST_REQUIRE(apply_preset(model, "r2r", parameters));
  return model;
}

routing_model model_of(std::vector<double> latencies_ms, matrix_rows routing,
                       matrix_rows committed_tokens) {
  routing_model model;
  model.latencies_ms = std::move(latencies_ms);
  model.routing = std::move(routing);
  model.committed_tokens = std::move(committed_tokens);
  return model;
}

double rate(const routing_model& model, std::uint32_t live_requests, const thresholds& b) {
  const auto got = delayed_batching_rate(model, live_requests, b);
  BOOST_REQUIRE_MESSAGE(got, (got ? "" : got.error().message));
  return got->tokens_per_second;
}

} // namespace

BOOST_AUTO_TEST_CASE(published_rates_are_reproduced) {
  struct row {
    std::uint32_t live_requests;
    std::vector<double> tokens_per_second; ///< B = (1, 1), (1, 2), ...
  };
  const std::vector<row> rows{
      {1, {63.4}},
      {2, {99.0, 110.3}},
      {3, {142.3, 158.1, 151.9}},
      {4, {187.2, 195.4, 208.0, 190.7}},
      {6, {278.0, 280.9, 291.3, 304.0, 298.0, 263.6}},
      {8, {369.2, 370.6, 374.4, 386.8, 399.0, 397.7, 381.1, 332.4}},
  };
  const auto model = r2r(0.35);
  for (const auto& row : rows)
    for (std::uint32_t b = 1; b <= row.tokens_per_second.size(); ++b)
      BOOST_TEST(std::abs(rate(model, row.live_requests, {1, b}) - row.tokens_per_second[b - 1]) <=
                     0.1,
                 "N=" << row.live_requests << " B_1=" << b << " gives "
                      << rate(model, row.live_requests, {1, b}));
}

BOOST_AUTO_TEST_CASE(state_counts_are_the_published_ones) {
  const auto model = r2r(0.35);
  BOOST_TEST(delayed_batching_rate(model, 8, thresholds{1, 1})->states_count == 3453u);
  BOOST_TEST(delayed_batching_rate(model, 8, thresholds{1, 8})->states_count == 9u);
}

BOOST_AUTO_TEST_CASE(one_request_pays_every_step_in_turn) {
  // A token costs a small step, and a large one in 35 of 100.
  BOOST_TEST(rate(r2r(0.35), 1, {1, 1}) == 1000 / (6.0 + 0.35 * 27.9),
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(requests_that_stay_share_every_step) {
  BOOST_TEST(rate(r2r(0), 8, {1, 1}) == 8 * 1000 / 6.0, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_period_does_not_keep_the_rate_from_settling) {
  // Every request goes back and forth, all together: two states, one token each round.
  BOOST_TEST(rate(r2r(1), 4, {1, 1}) == 4 * 1000 / 33.9, boost::test_tools::tolerance(1e-9));
  // Around three models, one token a hop.
  const auto ring =
      model_of({1, 2, 3}, {{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
  BOOST_TEST(rate(ring, 2, {1, 1, 1}) == 2 * 3 * 1000 / 6.0, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(slow_mixing_is_solved_by_elimination) {
  // p = 0.9 keeps the phase between the models for thousands of rounds.
  BOOST_TEST(rate(r2r(0.9), 16, {1, 1}) == 318.582239, boost::test_tools::tolerance(1e-8));
}

BOOST_AUTO_TEST_CASE(ends_that_are_never_left_count_as_often_as_they_are_reached) {
  // The first step decides for good between a fast and a slow model.
  const auto fork = model_of({1, 2, 10}, {{0, 0.25, 0.75}, {0, 1, 0}, {0, 0, 1}},
                             {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
  BOOST_TEST(rate(fork, 1, {1, 1, 1}) == 0.25 * 500 + 0.75 * 100,
             boost::test_tools::tolerance(1e-9));
  // Two requests: both fast, both slow, or one each.
  BOOST_TEST(rate(fork, 2, {1, 1, 1}) ==
                 0.0625 * 1000 + 0.5625 * 200 + 2 * 0.25 * 0.75 * (500 + 100),
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(chances_leaving_a_state_add_up_to_one) {
  auto model = r2r(0.35);
  const auto chain = enumerate_chain(model, 6, thresholds{1, 2}, 100'000);
  BOOST_REQUIRE(chain);
  for (std::uint32_t s = 0; s < chain->states(); ++s) {
    double sum = 0;
    for (std::size_t e = chain->first_edge[s]; e < chain->first_edge[s + 1]; ++e)
      sum += chain->edge_chance[e];
    BOOST_TEST(sum == 1, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(chain->hold_ticks[s] >= 1u);
  }
}

BOOST_AUTO_TEST_CASE(the_table_holds_every_vector_that_cannot_stop_all_models) {
  const auto table = optimise_batching(r2r(0.35), 4);
  BOOST_REQUIRE(table);
  BOOST_TEST(table->choices.size() == 10u); // pairs with (B_0 - 1) + (B_1 - 1) < 4
  for (std::size_t i = 1; i < table->choices.size(); ++i)
    BOOST_TEST(table->choices[i - 1].thresholds < table->choices[i].thresholds);
  for (const auto& choice : table->choices)
    BOOST_TEST(choice.thresholds[0] + choice.thresholds[1] - 2 < 4u);
  const auto& best = table->choices[table->best_index];
  BOOST_TEST(best.thresholds == (thresholds{1, 3}), boost::test_tools::per_element());
  BOOST_TEST(table->choices.front().thresholds == (thresholds{1, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_best_second_thresholds_are_the_published_ones) {
  const std::vector<std::uint32_t> best{1, 2, 2, 3, 4, 4, 5, 5};
  for (std::uint32_t n = 1; n <= best.size(); ++n) {
    const auto table = optimise_batching(r2r(0.35), n);
    BOOST_REQUIRE(table);
    const auto& chosen = table->choices[table->best_index].thresholds;
    BOOST_TEST(chosen == (thresholds{1, best[n - 1]}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(among_equal_rates_the_least_delay_is_best) {
  // Nobody ever goes to the second model: its threshold changes nothing.
  const auto table = optimise_batching(r2r(0), 3);
  BOOST_REQUIRE(table);
  BOOST_TEST(table->best_index == 0u);
}

BOOST_AUTO_TEST_CASE(what_can_stop_all_models_is_refused) {
  const auto model = r2r(0.35);
  struct row {
    std::uint32_t live_requests;
    thresholds b;
    std::string part;
  };
  const std::vector<row> rows{{4, {1, 5}, "4 requests can wait"},
                              {4, {3, 3}, "only 4 live"},
                              {4, {0, 1}, "threshold of 0"},
                              {0, {1, 1}, "0 live requests"},
                              {65, {1, 1}, "1 to 64"}};
  for (const auto& row : rows) {
    const auto got = delayed_batching_rate(model, row.live_requests, row.b);
    BOOST_REQUIRE(!got);
    BOOST_TEST((got.error().code == errc::invalid_argument));
    BOOST_TEST(got.error().message.find(row.part) != std::string::npos, got.error().message);
  }
}

BOOST_AUTO_TEST_CASE(work_past_the_limits_is_refused) {
  const auto model = r2r(0.35);
  const auto chain = delayed_batching_rate(model, 8, thresholds{1, 1}, {.states_max = 3000});
  BOOST_REQUIRE(!chain);
  BOOST_TEST((chain.error().code == errc::capacity));
  BOOST_TEST(chain.error().message.find("coarser time grid") != std::string::npos);
  BOOST_TEST(delayed_batching_rate(model, 8, thresholds{1, 1}, {.states_max = 3453}).has_value());
  const auto table = optimise_batching(model, 8, {.table_states_max = 10'000});
  BOOST_REQUIRE(!table);
  BOOST_TEST((table.error().code == errc::capacity));
}

BOOST_AUTO_TEST_CASE(a_chain_of_astronomic_size_is_refused_at_once) {
  routing_model model;
  model.latencies_ms = {1, 2, 3, 4, 5, 6, 7, 8};
  preset_parameters parameters;
  parameters.weights.assign(8, 0.125);
  BOOST_REQUIRE(apply_preset(model, "ensemble", parameters));
  const auto got = delayed_batching_rate(model, 64, thresholds(8, 1));
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::capacity));
}
