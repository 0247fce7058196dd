#pragma once

#include <optional>

#include "runtime/methods/r2r/switching.hpp"

namespace tokenrouter {

/// Strategy `immediate`: large where every metric that has a threshold reaches it; one below
/// vetoes. Without any threshold: aleatoric 2.275. No memory.
class immediate_switching final : public switching_strategy {
 public:
  immediate_switching(std::optional<double> aleatoric, std::optional<double> epistemic,
                      std::optional<double> entropy_nats);

  role_needs needs() const override;
  switch_decision decide(const route_input& in, method_state& state) const override;

 private:
  std::optional<double> aleatoric_;
  std::optional<double> epistemic_;
  std::optional<double> entropy_nats_;
};

} // namespace tokenrouter
