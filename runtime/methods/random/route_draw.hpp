#pragma once

#include <cstdint>

#include "runtime/core/philox.hpp"

namespace tokenrouter {

/// Uniform in [0, 1): the routing draw of a request for one position.
inline float route_draw(std::uint64_t seed, std::uint32_t position) {
  return uniform_draw(seed, static_cast<std::uint32_t>(draw_stream::route), position);
}

} // namespace tokenrouter
