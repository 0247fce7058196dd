#include "runtime/methods/r2r/multi_input_switching.hpp"

namespace tokenrouter {

role_needs multi_input_switching::needs() const {
  role_needs out{to_set(signal::heads), {"r2r_multi"}};
  out.head_window_positions = window_tokens_;
  out.request_threshold_max = 1;
  return out;
}

switch_decision multi_input_switching::decide(const route_input& in, method_state&) const {
  const std::uint32_t ran_tokens = in.position - in.prompt_tokens + 1;
  if (ran_tokens < window_tokens_)
    return {true, no_score};
  return {!(double{in.head_score} < in.threshold.value_or(threshold_)), in.head_score};
}

} // namespace tokenrouter
