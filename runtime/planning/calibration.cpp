#include "runtime/planning/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/core/check.hpp"

namespace tokenrouter {

result<calibration> calibrate_threshold(std::span<const double> ascending_scores,
                                        double large_share) {
  if (ascending_scores.empty())
    return fail(errc::invalid_argument, "no scores to calibrate with; give at least one");
  if (!(large_share >= 0 && large_share <= 1))
    return fail(errc::invalid_argument,
                "a large share of " + std::to_string(large_share) + "; give one from 0 to 1");
  check(std::is_sorted(ascending_scores.begin(), ascending_scores.end()), "scores are sorted");
  const auto scores = static_cast<double>(ascending_scores.size());
  const auto above = [&ascending_scores](double value) {
    return static_cast<std::size_t>(
        ascending_scores.end() -
        std::upper_bound(ascending_scores.begin(), ascending_scores.end(), value));
  };
  const auto next_above = [](double value) {
    return std::nextafter(value, std::numeric_limits<double>::infinity());
  };
  calibration out;
  const auto wanted = static_cast<std::size_t>(std::llround(large_share * scores));
  if (wanted == 0) {
    out.threshold = out.next_threshold = next_above(ascending_scores.back());
    return out;
  }
  out.threshold = ascending_scores[ascending_scores.size() - wanted];
  out.sent_count = static_cast<std::size_t>(
      ascending_scores.end() -
      std::lower_bound(ascending_scores.begin(), ascending_scores.end(), out.threshold));
  const std::size_t beyond = above(out.threshold);
  out.tied_count = out.sent_count - beyond;
  out.sent_share = static_cast<double>(out.sent_count) / scores;
  out.next_threshold = beyond > 0 ? ascending_scores[ascending_scores.size() - beyond]
                                  : next_above(ascending_scores.back());
  out.next_share = static_cast<double>(beyond) / scores;
  return out;
}

} // namespace tokenrouter
