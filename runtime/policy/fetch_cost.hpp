#pragma once

#include <cstdint>

namespace tokenrouter {

/// What a token of a prompt's beginning costs, as a running mean of what was seen.
class token_cost {
 public:
  /// Requires tokens > 0.
  void note(std::uint64_t us, std::uint64_t tokens);

  /// In microseconds; 0: nothing was seen yet.
  double us_per_token() const { return mean_us_; }

 private:
  double mean_us_ = 0;
};

/// Whether KV that has to be sent is worth fetching, by what a token takes to be fetched and to be
/// computed: up to twice as long, since it leaves the device to other requests. What is not known
/// yet (0) is found out.
bool worth_sending(double fetched_us_per_token, double computed_us_per_token);

} // namespace tokenrouter
