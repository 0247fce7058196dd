#include <cstdio>

#include <CLI/CLI.hpp>

#include "tests/sim/simulation.hpp"

/// Runs many seeds and reports every broken invariant with the seed that replays it.
int main(int argc, char** argv) {
  CLI::App program("Simulate whole jobs; each seed is one job.");
  std::uint64_t first_seed = 1, seeds = 100;
  program.add_option("--first-seed", first_seed)->capture_default_str();
  program.add_option("--seeds", seeds)->capture_default_str();
  CLI11_PARSE(program, argc, argv);
  std::uint64_t events = 0, violations = 0, handoffs = 0, evictions = 0, cached = 0, fetched = 0;
  std::uint64_t losses = 0, reduced = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    const auto outcome = tokenrouter::sim::simulate(tokenrouter::sim::make_scenario(seed));
    events += outcome.events;
    handoffs += outcome.handoffs;
    evictions += outcome.evictions;
    cached += outcome.cached;
    losses += outcome.losses;
    reduced += outcome.reduced;
    fetched += outcome.fetched;
    violations += outcome.violations.size();
    for (const auto& line : outcome.violations)
      std::printf("%s\n", line.c_str());
  }
  std::printf("%llu handoffs, %llu positions run again, %llu from a prefix cache, %llu of "
              "these from a sibling's\n",
              static_cast<unsigned long long>(handoffs), static_cast<unsigned long long>(evictions),
              static_cast<unsigned long long>(cached), static_cast<unsigned long long>(fetched));
  std::printf("%llu ranks lost by jobs that went on, %llu requests without some model\n",
              static_cast<unsigned long long>(losses), static_cast<unsigned long long>(reduced));
  std::printf("%llu seeds, %llu events, %llu violations\n", static_cast<unsigned long long>(seeds),
              static_cast<unsigned long long>(events), static_cast<unsigned long long>(violations));
  return violations == 0 && seeds > 0 ? 0 : 1;
}
