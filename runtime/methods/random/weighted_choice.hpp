#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// One of N by weight.
class weighted_choice {
 public:
  /// Weights are divided by their sum. Errors: invalid_argument (another number than `count`, a
  /// weight that is negative or not finite, a sum of 0).
  static result<weighted_choice> make(std::span<const double> weights, std::size_t count);

  /// The index whose share of [0, 1) holds `drawn`; one of weight 0 is never taken.
  std::size_t at(double drawn) const;

 private:
  explicit weighted_choice(std::vector<double> ends) : ends_(std::move(ends)) {}

  std::vector<double> ends_; ///< cumulative weights, not normalised
};

} // namespace tokenrouter
