#pragma once

#include "runtime/methods/r2r/switching.hpp"

namespace tokenrouter {

/// Strategy `momentum`: m ← d·m + (1 − d)·[aleatoric < threshold], from m = 0. While the small
/// model writes, large at m ≤ quick_to_reference; while the large one does, large at m ≤
/// reference_to_quick.
class momentum_switching final : public switching_strategy {
 public:
  struct options {
    double aleatoric_threshold;
    double decay_fraction;
    double quick_to_reference_threshold;
    double reference_to_quick_threshold;
  };

  explicit momentum_switching(const options& o) : options_(o) {}

  role_needs needs() const override { return {to_set(signal::evidence), {}}; }
  switch_decision decide(const route_input& in, method_state& state) const override;

 private:
  options options_;
};

} // namespace tokenrouter
