#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/exact_float.hpp"
#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// Added to one token's logit before a draw.
struct logit_bias {
  token_id token = -1;
  float bias = 0; ///< from −limits::logit_bias_largest to that

  friend bool operator==(const logit_bias&, const logit_bias&) = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, logit_bias& x) {
    return f(x.token, x.bias);
  }
};

/// How a token is drawn from raw logits. Part of a request; travels with its handoffs.
struct sampling_params {
  float temperature = 0.0f; ///< 0 = greedy (smallest id wins a tie)
  std::uint32_t top_k = 0;  ///< 0 = off
  float top_p = 1.0f;       ///< 1 = off
  float min_p = 0.0f;       ///< 0 = off; relative to the largest probability
  std::uint64_t seed = 0;
  /// By token, each once. Of the draw alone: signals, heads and log-probabilities go by raw logits.
  std::vector<logit_bias> biases{};

  friend bool operator==(const sampling_params&, const sampling_params&) = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, sampling_params& x) {
    exact_float temperature{x.temperature}, top_p{x.top_p}, min_p{x.min_p};
    const write_back after{x, temperature, top_p, min_p};
    return f(temperature, x.top_k, top_p, min_p, x.seed, x.biases);
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
