#include "runtime/core/philox.hpp"

#include <Random123/philox.h>

namespace tokenrouter {

float uniform_draw(std::uint64_t seed, std::uint32_t stream, std::uint32_t position,
                   std::uint32_t lane) {
  const r123::Philox4x32::ctr_type counter = {{position, stream, lane, 0}};
  const r123::Philox4x32::key_type key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const auto word = r123::Philox4x32{}(counter, key)[0];
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

} // namespace tokenrouter
