#pragma once

#include <cstdint>

#include "runtime/core/error.hpp"
#include "runtime/methods/parameters.hpp"

namespace tokenrouter {

/// Co-LLM's deferral threshold η_t by output token t, with s = schedule_start_threshold, W =
/// warmup_tokens and η = threshold:
///   constant η · linear s + (η − s)·t/W · exponential s·(η/s)^(t/W) · cosine η + (s − η)/2·(1 +
///   cos(πt/W)); η for t ≥ W.
class threshold_schedule {
 public:
  /// Errors: invalid_argument (unknown schedule, no threshold, exponential from 0).
  static result<threshold_schedule> make(const method_parameters& parameters);

  double at(std::uint32_t output_tokens) const;

  /// The same with another η.
  threshold_schedule to(double threshold) const {
    return {form_, start_, threshold, warmup_tokens_};
  }

 private:
  enum class shape : std::uint8_t { constant, linear, exponential, cosine };

  threshold_schedule(shape form, double start, double end, std::uint32_t warmup_tokens)
      : form_(form), start_(start), end_(end), warmup_tokens_(warmup_tokens) {}

  shape form_;
  double start_;
  double end_;
  std::uint32_t warmup_tokens_;
};

} // namespace tokenrouter
