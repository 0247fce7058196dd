#pragma once

#include "runtime/methods/r2r/switching.hpp"

namespace tokenrouter {

/// Strategy `random`: large with probability `reference_share`, drawn from (seed of the request,
/// stream route, position).
class random_switching final : public switching_strategy {
 public:
  explicit random_switching(double reference_share) : reference_share_(reference_share) {}

  role_needs needs() const override { return {}; }
  switch_decision decide(const route_input& in, method_state& state) const override;

 private:
  double reference_share_;
};

} // namespace tokenrouter
