#include "runtime/methods/r2r/threshold_switching.hpp"

namespace tokenrouter {

role_needs threshold_switching::needs() const {
  if (from_ == source::head)
    return {to_set(signal::heads), {"r2r"}};
  return {to_set(signal::entropy), {}};
}

switch_decision threshold_switching::decide(const route_input& in, method_state&) const {
  const float score = from_ == source::head ? in.head_score : in.entropy_nats;
  return {!(double{score} < threshold_), score};
}

} // namespace tokenrouter
