#include "runtime/methods/citer/citer.hpp"

#include "runtime/methods/plain/single_token.hpp"

namespace tokenrouter {

role_needs citer_small::needs() const {
  role_needs out{to_set(signal::heads), {head_}};
  out.request_threshold_max = 1;
  return out;
}

route_decision citer_small::route(const route_input& in, method_state&) const {
  // Written so that NaN goes to the large model.
  const bool stay = double{in.head_score} >= in.threshold.value_or(threshold_);
  return {stay ? route_action::stay : route_action::go_drop, large_, in.head_score};
}

role_result make_citer_small(model_id, const method_topology& topology,
                             const method_parameters& parameters) {
  const auto large = only_model_with(topology, "citer_llm");
  if (!large)
    return tl::unexpected(large.error());
  if (parameters.head_form != "folded" && parameters.head_form != "unfolded")
    return fail(errc::invalid_argument,
                "method.head_form: must be folded or unfolded, not '" + parameters.head_form + "'");
  return std::make_unique<citer_small>(
      *large, parameters.head_form == "folded" ? "citer" : "citer_unfolded",
      parameters.threshold.value_or(0.5));
}

role_result make_citer_large(model_id, const method_topology& topology, const method_parameters&) {
  return make_single_token(topology, "citer_slm");
}

} // namespace tokenrouter
