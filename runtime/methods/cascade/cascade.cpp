#include "runtime/methods/cascade/cascade.hpp"

namespace tokenrouter {

role_needs cascade_stage::needs() const {
  return {next_ ? to_set(signal::entropy) : signal_set{0}, {}};
}

route_decision cascade_stage::route(const route_input& in, method_state&) const {
  const float score = next_ ? in.entropy_nats : no_score;
  // Written so that NaN goes to the larger model.
  if (next_ && !(static_cast<double>(score) <= threshold_))
    return {route_action::go_drop, *next_, score};
  if (self_ != first_)
    return {route_action::go_keep, first_, score};
  return {route_action::stay, first_, score};
}

role_result make_cascade(model_id self, const method_topology& topology,
                         const method_parameters& parameters) {
  const auto stages = models_with_role(topology, "cascade");
  if (parameters.thresholds.size() + 1 != stages.size())
    return fail(errc::invalid_argument,
                "method.thresholds: a cascade of " + std::to_string(stages.size()) +
                    " models needs " + std::to_string(stages.size() - 1) + " thresholds, not " +
                    std::to_string(parameters.thresholds.size()));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i] != self)
      continue;
    const bool last = i + 1 == stages.size();
    return std::make_unique<cascade_stage>(self, stages.front(),
                                           last ? std::nullopt : std::optional(stages[i + 1]),
                                           last ? 0.0 : parameters.thresholds[i]);
  }
  return fail(errc::invalid_argument, "this model is no stage of the cascade");
}

} // namespace tokenrouter
