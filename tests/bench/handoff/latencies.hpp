#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tokenrouter::bench {

/// Percentiles of a set of latencies, in microseconds, and messages per second where measured.
struct summary {
  double p50_us = 0;
  double p99_us = 0;
  double messages_per_s = 0;
};

/// Nearest rank; sorts its argument. All zero if there are none.
inline summary summarise(std::vector<double>& latencies_us) {
  if (latencies_us.empty())
    return {};
  std::sort(latencies_us.begin(), latencies_us.end());
  const auto at = [&](double share) {
    const auto i = static_cast<std::size_t>(share * static_cast<double>(latencies_us.size()));
    return latencies_us[std::min(i, latencies_us.size() - 1)];
  };
  return {at(0.5), at(0.99), 0};
}

} // namespace tokenrouter::bench
