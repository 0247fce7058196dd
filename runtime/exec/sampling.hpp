#pragma once

#include <cstdint>

#include "runtime/core/exact_float.hpp"

namespace tokenrouter {

/// How a token is drawn from raw logits. Part of a request; travels with its handoffs.
struct sampling_params {
  float temperature = 0.0f; ///< 0 = greedy (smallest id wins a tie)
  std::uint32_t top_k = 0;  ///< 0 = off
  float top_p = 1.0f;       ///< 1 = off
  float min_p = 0.0f;       ///< 0 = off; relative to the largest probability
  std::uint64_t seed = 0;

  friend bool operator==(const sampling_params&, const sampling_params&) = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, sampling_params& x) {
    exact_float temperature{x.temperature}, top_p{x.top_p}, min_p{x.min_p};
    const write_back after{x, temperature, top_p, min_p};
    return f(temperature, x.top_k, top_p, min_p, x.seed);
  }

 private:
  struct write_back {
    sampling_params& to;
    const exact_float &temperature, &top_p, &min_p;
    ~write_back() {
      to.temperature = temperature.value;
      to.top_p = top_p.value;
      to.min_p = min_p.value;
    }
  };
};

} // namespace tokenrouter
