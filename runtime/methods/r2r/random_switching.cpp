#include "runtime/methods/r2r/random_switching.hpp"

#include "runtime/methods/random/route_draw.hpp"

namespace tokenrouter {

switch_decision random_switching::decide(const route_input& in, method_state&) const {
  const float drawn = route_draw(in.seed, in.position);
  return {double{drawn} < reference_share_, drawn};
}

} // namespace tokenrouter
