#include "runtime/methods/r2r/r2r.hpp"

namespace tokenrouter {

route_decision r2r_small::route(const route_input& in, method_state& state) const {
  const switch_decision decided = strategy_->decide(in, state);
  return {decided.to_large ? route_action::go_drop : route_action::stay, large_, decided.score};
}

role_result make_r2r_small(model_id, const method_topology& topology,
                           const method_parameters& parameters) {
  const auto large = only_model_with(topology, "r2r_llm");
  if (!large)
    return tl::unexpected(large.error());
  auto strategy = make_switching_strategy(parameters);
  if (!strategy)
    return tl::unexpected(strategy.error());
  return std::make_unique<r2r_small>(*large, std::move(*strategy));
}

role_result make_r2r_large(model_id, const method_topology& topology, const method_parameters&) {
  return make_single_token(topology, "r2r_slm");
}

} // namespace tokenrouter
