#pragma once

#include <bit>
#include <cstdint>

namespace tokenrouter {

/// e^y for y ≤ 0, free of branches so that a loop over it is vectorised. It is 2^n · e^r with
/// |r| ≤ ln 2 / 2 and a Taylor polynomial of degree 7 (truncation error below 1e-8); 0 for NaN and
/// for y below −87, where e^y would be subnormal.
__attribute__((always_inline)) inline float exp_nonpositive(float y) {
  constexpr float magic = 12582912.0f; // 1.5 · 2^23: adding it rounds to an integer
  const float shifted = y * 1.44269504f + magic;
  const float n = shifted - magic;
  const float r = (y - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = r * (1.0f / 5040) + (1.0f / 720);
  p = p * r + (1.0f / 120);
  p = p * r + (1.0f / 24);
  p = p * r + (1.0f / 6);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) - 0x4B400000u;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(p) + (exponent << 23);
  const std::uint32_t counts = y > -87.0f ? ~0u : 0u;
  return std::bit_cast<float>(bits & counts);
}

} // namespace tokenrouter
