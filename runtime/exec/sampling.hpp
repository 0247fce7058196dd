#pragma once

#include <cstdint>

namespace tokenrouter {

/// How a token is drawn from raw logits. Part of a request; travels with its first send.
struct sampling_params {
  float temperature = 0.0f; ///< 0 = greedy (smallest id wins a tie)
  std::uint32_t top_k = 0;  ///< 0 = off
  float top_p = 1.0f;       ///< 1 = off
  float min_p = 0.0f;       ///< 0 = off; relative to the largest probability
  std::uint64_t seed = 0;

  friend bool operator==(const sampling_params&, const sampling_params&) = default;
};

template <class Inspector>
auto inspect(Inspector& f, sampling_params& x) {
  return f(x.temperature, x.top_k, x.top_p, x.min_p, x.seed);
}

} // namespace tokenrouter
