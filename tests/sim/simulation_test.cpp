#include <boost/test/unit_test.hpp>

#include "tests/sim/simulation.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_seed_replays_exactly) {
  for (std::uint64_t seed : {3, 11, 42}) {
    const auto first = sim::simulate(sim::make_scenario(seed));
    const auto second = sim::simulate(sim::make_scenario(seed));
    BOOST_TEST(first.trace_hash == second.trace_hash);
    BOOST_TEST(first.events == second.events);
  }
}

BOOST_AUTO_TEST_CASE(every_invariant_holds_on_many_seeds) {
  std::uint64_t handoffs = 0, evictions = 0, cached = 0, fetched = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const auto outcome = sim::simulate(sim::make_scenario(seed));
    for (const auto& line : outcome.violations)
      BOOST_ERROR(line);
    handoffs += outcome.handoffs;
    evictions += outcome.evictions;
    cached += outcome.cached;
    fetched += outcome.fetched;
  }
  // The seeds must have reached what they are there to test.
  BOOST_TEST(handoffs > 1000u);
  BOOST_TEST(evictions > 1000u);
  BOOST_TEST(cached > 1000u);
  BOOST_TEST(fetched > 1000u);
}

BOOST_AUTO_TEST_CASE(windows_of_heads_hold_answered_positions_on_many_seeds) {
  std::uint64_t handoffs = 0, evictions = 0, cached = 0;
  int scenarios = 0;
  for (std::uint64_t seed = 1000; scenarios < 40; ++seed) {
    const auto scenario = sim::make_scenario(seed);
    if (scenario.topology.roles.front() != "r2r_slm" || scenario.parameters.window_tokens < 2 ||
        scenario.parameters.switching_strategy != "neural_multi_input")
      continue;
    ++scenarios;
    const auto outcome = sim::simulate(scenario);
    for (const auto& line : outcome.violations)
      BOOST_ERROR(line);
    handoffs += outcome.handoffs;
    evictions += outcome.evictions;
    cached += outcome.cached;
  }
  BOOST_TEST(handoffs > 100u);
  BOOST_TEST(evictions > 100u);
  BOOST_TEST(cached > 100u);
}
