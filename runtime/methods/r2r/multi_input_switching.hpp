#pragma once

#include "runtime/methods/r2r/switching.hpp"

namespace tokenrouter {

/// Strategy `neural_multi_input`: head "r2r_multi" reads the last `window_tokens` positions of the
/// output that the small model ran; large at or above the threshold, and until that many positions
/// were run (their number follows from the position, so nothing is remembered).
class multi_input_switching final : public switching_strategy {
 public:
  multi_input_switching(std::uint32_t window_tokens, double threshold)
      : window_tokens_(window_tokens), threshold_(threshold) {}

  role_needs needs() const override;
  switch_decision decide(const route_input& in, method_state& state) const override;

 private:
  std::uint32_t window_tokens_;
  double threshold_;
};

} // namespace tokenrouter
