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

} // namespace tokenrouter
