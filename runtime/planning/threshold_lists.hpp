#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/planning/markov.hpp"
#include "runtime/planning/routing_model.hpp"

namespace tokenrouter {

/// Thresholds for every number of live requests from 1 to N.
struct threshold_lists {
  std::vector<std::vector<std::uint32_t>> of_model; ///< [model][n - 1]
  std::vector<batching_rate> rates;                 ///< [n - 1], with these thresholds
  std::vector<double> no_delay_tokens_per_second;   ///< [n - 1], with every threshold 1
  std::vector<double> best_tokens_per_second;       ///< [n - 1], with the best thresholds for n

  /// How far a rate is below the best for its n, at most; 0: nowhere.
  double worst_loss_share() const;
};

/// The thresholds to use as requests come and go. For every n: sum(B_i - 1) < n, so some model can
/// always start. Every model's list never falls as n grows, so that a request that ends never
/// raises a threshold: of all such sequences it is the one whose rates, each relative to the best
/// for its n, fall short of 1 by the least in sum (dynamic programming over the tables of all n);
/// among equals the least delay. Where the best vectors of all n already never fall, these are
/// they. `tables[n - 1]` is the whole table for n; requires at least one, and as many models in
/// each.
threshold_lists choose_threshold_lists(const std::vector<batching_table>& tables);

/// The same from the model, for 1 to `live_requests_max` live requests. Errors: as
/// `optimise_batching`; `limits.table_states_max` holds for each n.
result<threshold_lists> plan_threshold_lists(const routing_model& model,
                                             std::uint32_t live_requests_max,
                                             const chain_limits& limits = {});

} // namespace tokenrouter
