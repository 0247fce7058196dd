#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

namespace tokenrouter {

/// Thresholds between N models, smallest first.
class query_levels {
 public:
  /// `thresholds` (N − 1, ascending) or, of two models, `threshold`. Error: invalid_argument.
  static result<query_levels> make(const method_topology& topology,
                                   const method_parameters& parameters);

  /// The model for a score: one further up for each threshold that it reaches. NaN: the last.
  /// `own`: a request's, in place of the job's; requires takes_own().
  model_id of(double score, std::optional<double> own = std::nullopt) const;

  /// Of two models: there is one threshold, which a request may bring.
  bool takes_own() const { return thresholds_.size() == 1; }

 private:
  explicit query_levels(std::vector<double> thresholds) : thresholds_(std::move(thresholds)) {}

  std::vector<double> thresholds_;
};

/// Uniform in [0, 1) over prompts and the same for equal ones, whatever the seed.
float prompt_hash_score(std::span<const token_id> prompt);

} // namespace tokenrouter
