#include "runtime/methods/r2r/immediate_switching.hpp"

#include <cmath>

#include "runtime/methods/r2r/defaults.hpp"

namespace tokenrouter {

immediate_switching::immediate_switching(std::optional<double> aleatoric,
                                         std::optional<double> epistemic,
                                         std::optional<double> entropy_nats)
    : aleatoric_(aleatoric), epistemic_(epistemic), entropy_nats_(entropy_nats) {
  if (!aleatoric && !epistemic && !entropy_nats)
    aleatoric_ = r2r_defaults::aleatoric_threshold;
}

role_needs immediate_switching::needs() const {
  signal_set signals = 0;
  if (aleatoric_ || epistemic_)
    signals = signals | signal::evidence;
  if (entropy_nats_)
    signals = signals | signal::entropy;
  return {signals, {}};
}

switch_decision immediate_switching::decide(const route_input& in, method_state&) const {
  const std::pair<float, std::optional<double>> metrics[] = {
      {in.aleatoric, aleatoric_}, {in.epistemic, epistemic_}, {in.entropy_nats, entropy_nats_}};
  switch_decision out{true, no_score};
  bool unknown = false;
  for (const auto& [value, threshold] : metrics) {
    if (!threshold)
      continue;
    if (std::isnan(out.score))
      out.score = value;
    unknown |= std::isnan(value);
    out.to_large &= double{value} >= *threshold;
  }
  out.to_large |= unknown;
  return out;
}

} // namespace tokenrouter
