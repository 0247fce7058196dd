#pragma once

#include <cstddef>
#include <span>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// A threshold, and what `score >= threshold` sends to the large model on the scores it comes from.
struct calibration {
  double threshold = 0;
  std::size_t sent_count = 0; ///< scores that reach it
  std::size_t tied_count = 0; ///< of these, as many equal it
  double sent_share = 0;      ///< sent_count of all; over the share wanted only by ties
  double next_threshold = 0;  ///< the least value that leaves the ties out
  double next_share = 0;      ///< what that one sends
};

/// The (1 - large_share) quantile of scores in ascending order: the score that the wanted share of
/// them, to the nearest whole score, reaches. If that is none of them, the least value above all.
/// Errors: no scores, a share outside 0 to 1. Requires finite, sorted scores.
result<calibration> calibrate_threshold(std::span<const double> ascending_scores,
                                        double large_share);

} // namespace tokenrouter
