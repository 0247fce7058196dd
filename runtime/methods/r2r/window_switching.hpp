#pragma once

#include <optional>

#include "runtime/methods/r2r/switching.hpp"

namespace tokenrouter {

/// Strategies single_rolling_window, duo_rolling_window and neural_rolling_window. While the small
/// model writes, a value at or above the threshold goes to the large model and empties the window.
/// While the large one does, the value joins the window and the large model goes on until the mean
/// of the last `window_tokens` (fewer at first) falls below the threshold.
class window_switching final : public switching_strategy {
 public:
  enum class source : std::uint8_t { aleatoric, head };

  struct options {
    source from;
    double threshold;
    std::uint32_t window_tokens; ///< 1 … r2r_defaults::window_tokens_max
    bool keeps_trigger;          ///< the value that went to the large model opens the window
    std::optional<double> simple_entropy_nats; ///< below it the small model writes all the same
  };

  explicit window_switching(const options& o) : options_(o) {}

  role_needs needs() const override;
  switch_decision decide(const route_input& in, method_state& state) const override;

 private:
  double threshold_of(const route_input& in) const;
  bool is_simple(const route_input& in, float value) const;

  options options_;
};

} // namespace tokenrouter
