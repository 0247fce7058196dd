#include "runtime/methods/r2r/r2r.hpp"

namespace tokenrouter {

role_needs r2r_small::needs() const {
  if (strategy_ == r2r_strategy::neural)
    return {to_set(signal::heads), {"r2r"}};
  return {to_set(signal::entropy), {}};
}

route_decision r2r_small::route(const route_input& in, method_state&) const {
  const float score = strategy_ == r2r_strategy::neural ? in.head_score : in.entropy_nats;
  // Written so that NaN goes to the large model.
  const bool stay = static_cast<double>(score) < threshold_;
  return {stay ? route_action::stay : route_action::go_drop, large_, score};
}

} // namespace tokenrouter
