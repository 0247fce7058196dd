#include "runtime/methods/collm/collm.hpp"

#include <cmath>

#include "runtime/methods/plain/single_token.hpp"

namespace tokenrouter {

role_needs collm_base::needs() const {
  signal_set signals = to_set(signal::heads);
  if (composes_)
    signals = signals | signal::distribution;
  role_needs out{signals, {head_}};
  out.request_threshold_max = 1;
  return out;
}

route_decision collm_base::route(const route_input& in, method_state&) const {
  const float defer = in.head_score;
  // Written so that NaN goes to the large model.
  const auto schedule = in.threshold ? schedule_.to(*in.threshold) : schedule_;
  if (double{defer} <= schedule.at(in.position - in.prompt_tokens))
    return {route_action::stay, assistant_, defer};
  route_decision out{route_action::go_drop, assistant_, defer};
  if (composes_ && !std::isnan(defer))
    out.mix_weight = defer;
  return out;
}

role_result make_collm_base(model_id, const method_topology& topology,
                            const method_parameters& parameters) {
  const auto assistant = only_model_with(topology, "collm_assist");
  if (!assistant)
    return tl::unexpected(assistant.error());
  const auto schedule = threshold_schedule::make(parameters);
  if (!schedule)
    return tl::unexpected(schedule.error());
  if (parameters.combine != "defer" && parameters.combine != "compose")
    return fail(errc::invalid_argument,
                "method.combine: must be defer or compose, not '" + parameters.combine + "'");
  return std::make_unique<collm_base>(*assistant,
                                      parameters.defer_token.empty() ? "collm" : "collm_row",
                                      *schedule, parameters.combine == "compose");
}

role_result make_collm_assist(model_id, const method_topology& topology, const method_parameters&) {
  return make_single_token(topology, "collm_base");
}

} // namespace tokenrouter
