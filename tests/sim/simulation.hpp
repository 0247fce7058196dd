#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/scenario.hpp"

namespace tokenrouter::sim {

struct outcome {
  std::uint64_t events = 0;    ///< actor resumptions and frames
  std::uint64_t evictions = 0; ///< positions computed again, as requests report them
  std::uint64_t cached = 0;    ///< positions that came from a prefix cache
  std::uint64_t fetched = 0;   ///< … of a sibling, first of all
  std::uint64_t handoffs = 0;
  std::uint64_t losses = 0;            ///< ranks that the job went on without
  std::uint64_t reduced = 0;           ///< requests of jobs that had lost all of some model
  std::uint64_t trace_hash = 0;        ///< of every token, in order: equal for equal runs
  std::vector<std::string> violations; ///< empty: every invariant held
};

/// Runs a scenario to its end on the product's own loop, actors and protocol, under a virtual clock
/// over an in-memory network, and checks DESIGN's invariants: each request ends once; its tokens
/// and their makers are what the method says; nothing is computed twice unless it was evicted;
/// pools return to their start; after a death every survivor ends in bounded time, or, in a job
/// that goes on, every request is answered as without it while some replica of each model is left.
outcome simulate(const scenario& s);

} // namespace tokenrouter::sim
