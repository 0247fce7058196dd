#pragma once

#include <optional>

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

namespace tokenrouter {

/// A chain of models, smallest first: role `cascade` for each. Every position starts at the first
/// model; a stage whose entropy exceeds its threshold drops its proposal and passes the position on
/// to the next; the last stage never does. Whoever commits, the first model makes the next
/// position.
class cascade_stage final : public method_role {
 public:
  /// `next` and `threshold` are absent for the last stage.
  cascade_stage(model_id self, model_id first, std::optional<model_id> next, double threshold)
      : self_(self), first_(first), next_(next), threshold_(threshold) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id self_;
  model_id first_;
  std::optional<model_id> next_;
  double threshold_;
};

/// Error: invalid_argument, where the thresholds are not one fewer than the stages.
role_result make_cascade(model_id self, const method_topology& topology,
                         const method_parameters& parameters);

} // namespace tokenrouter
