#pragma once

#include "runtime/methods/method.hpp"

namespace tokenrouter {

/// What a decision to go to a model that is out of service becomes: the deciding model commits what
/// is tentative and its own proposal, or the tokens forced in place of it, and goes on.
inline route_decision stay_instead(const route_decision& decision) {
  route_decision out;
  out.action = route_action::stay;
  out.score = decision.score;
  if (decision.action == route_action::go_keep)
    out.forced = decision.forced;
  return out;
}

inline bool goes(const route_decision& decision) {
  return decision.action != route_action::stay && decision.action != route_action::stay_tentative;
}

} // namespace tokenrouter
