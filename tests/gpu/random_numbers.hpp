#pragma once

#include <cstdint>
#include <random>

namespace tokenrouter::test {

/// Uniform in [0, bound), the same on every platform.
inline std::uint32_t below(std::mt19937& random, std::uint32_t bound) {
  return static_cast<std::uint32_t>(random() % bound);
}

} // namespace tokenrouter::test
