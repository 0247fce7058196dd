#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/planning/routing_model.hpp"

namespace tokenrouter {

/// The Markov chain of N live requests under delayed batching, embedded at the moments when a batch
/// has ended and every model that may start has started. State 0 is the start: all requests wait at
/// the entry model, which has launched if its threshold lets it. Rows are stored one after another.
///
/// A state is, for each model, how many requests wait, how many are in its running batch, and how
/// many ticks that batch still takes. From it the time moves on by the least of those ticks; every
/// batch that ends sends each of its requests on by the model's row of chances, independently; then
/// every idle model with at least its threshold of waiting requests takes them all.
struct batching_chain {
  std::vector<std::size_t> first_edge;   ///< states + 1; edges of state s: [s] to [s + 1]
  std::vector<std::uint32_t> edge_state; ///< where an edge leads; once a state and target
  std::vector<double> edge_chance;       ///< > 0; of one state they add up to 1
  std::vector<std::uint32_t> hold_ticks; ///< per state; >= 1
  std::vector<double> commit_tokens;     ///< per state: expected tokens committed at its end

  std::uint32_t states() const { return static_cast<std::uint32_t>(hold_ticks.size()); }
};

/// Enumerates the chain. `model` has passed `check_routing_model`, `thresholds` has one per model.
/// Chances are doubles, products of exact binomial coefficients and the given decimals: those are
/// not exact in binary either, and what is asked of the result is a tenth of a token a second.
/// Errors: thresholds that could stop every model (sum of B - 1 is not below the live requests), a
/// threshold of 0, `live_requests` outside 1 to `chain_live_max`, more states than `states_max`.
result<batching_chain> enumerate_chain(const routing_model& model, std::uint32_t live_requests,
                                       std::span<const std::uint32_t> thresholds,
                                       std::uint32_t states_max);

} // namespace tokenrouter
