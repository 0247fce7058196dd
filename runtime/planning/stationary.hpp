#pragma once

#include "runtime/core/error.hpp"
#include "runtime/planning/batching_chain.hpp"

namespace tokenrouter {

/// Tokens committed a tick, in the long run from state 0: expected tokens over expected ticks under
/// the stationary distribution. The chain may be periodic. Where it has several classes of states
/// that it can't leave, the rates of these count as often as state 0 ends in them. Solved by
/// iteration or, where that is small or mixes too slowly, by sparse elimination. Error: capacity,
/// for a chain that is too large for the one and too slow for the other.
result<double> long_run_tokens_per_tick(const batching_chain& chain);

} // namespace tokenrouter
