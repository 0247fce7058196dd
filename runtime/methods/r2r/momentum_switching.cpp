#include "runtime/methods/r2r/momentum_switching.hpp"

#include <cmath>

namespace tokenrouter {

namespace {

struct momentum_state {
  double momentum = 0;
  std::uint64_t quick = 0; ///< 1: the small model made the position before
};

} // namespace

switch_decision momentum_switching::decide(const route_input& in, method_state& state) const {
  auto s = state.get<momentum_state>();
  const bool simple = double{in.aleatoric} < options_.aleatoric_threshold;
  s.momentum = options_.decay_fraction * s.momentum + (simple ? 1 - options_.decay_fraction : 0.0);
  const double limit =
      s.quick ? options_.quick_to_reference_threshold : options_.reference_to_quick_threshold;
  const bool to_large = s.momentum <= limit || std::isnan(in.aleatoric);
  s.quick = to_large ? 0 : 1;
  state.set(s);
  return {to_large, static_cast<float>(s.momentum)};
}

} // namespace tokenrouter
