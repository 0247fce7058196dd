#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/planning/routing_model.hpp"

/// The delayed-batching model: how many tokens a second N requests commit when model i starts a
/// batch only with at least B_i of them, and which thresholds B are best. Exact but for rounding:
/// every reachable state, and the stationary distribution by a sparse direct solve.
namespace tokenrouter {

/// Bounds on the work of one call; past them it fails with `capacity`.
struct chain_limits {
  std::uint32_t states_max = 200'000;          ///< of one chain
  std::uint64_t table_states_max = 20'000'000; ///< of all chains of one table
  const std::atomic<bool>* stop = nullptr;     ///< once true, a table fails with `cancelled`
};

struct batching_rate {
  double tokens_per_second = 0;
  std::uint32_t states_count = 0; ///< reachable states of the chain

  friend bool operator==(const batching_rate&, const batching_rate&) = default;
};

/// T(B) for these thresholds, one a model. Errors: what `check_routing_model` refuses, thresholds
/// that could stop every model, the limits.
result<batching_rate> delayed_batching_rate(const routing_model& model, std::uint32_t live_requests,
                                            std::span<const std::uint32_t> thresholds,
                                            const chain_limits& limits = {});

struct batching_choice {
  std::vector<std::uint32_t> thresholds; ///< one a model
  batching_rate rate;
};

struct batching_table {
  std::vector<batching_choice> choices; ///< every vector that can't stop all models, in
                                        ///< lexicographic order; the first is all ones: no delay
  std::size_t best_index = 0; ///< highest rate; among equals (within 1e-9) the least delay
};

/// T(B) of every B in {1..N}^M with sum(B_i - 1) < N. Errors as above.
result<batching_table> optimise_batching(const routing_model& model, std::uint32_t live_requests,
                                         const chain_limits& limits = {});

} // namespace tokenrouter
