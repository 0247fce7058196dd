#include "runtime/methods/r2r/threshold_switching.hpp"

namespace tokenrouter {

role_needs threshold_switching::needs() const {
  role_needs out = from_ == source::head ? role_needs{to_set(signal::heads), {"r2r"}}
                                         : role_needs{to_set(signal::entropy), {}};
  out.request_threshold_max = from_ == source::head ? 1 : nats_max;
  return out;
}

switch_decision threshold_switching::decide(const route_input& in, method_state&) const {
  const float score = from_ == source::head ? in.head_score : in.entropy_nats;
  return {!(double{score} < in.threshold.value_or(threshold_)), score};
}

} // namespace tokenrouter
