#include "runtime/exec/cpu/make_table.hpp"

namespace tokenrouter::cpu {
namespace {

std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

/// 16 lanes in plain C++, for processors without a set of their own.
struct v16 {
  float at[lanes];

  static constexpr bool packs_operands = false;
  static constexpr int tile_rows_max = 6;
  static constexpr int panel_group = 4;
  static constexpr int tile_panels(int) { return 1; }

  template <class F>
  [[gnu::always_inline]] static v16 each(F f) {
    v16 r;
    for (std::uint32_t i = 0; i < lanes; ++i)
      r.at[i] = f(i);
    return r;
  }

  static v16 zero() { return broadcast(0.0f); }
  static v16 broadcast(float x) {
    return each([=](std::uint32_t) { return x; });
  }
  static v16 load(const float* p) {
    return each([=](std::uint32_t i) { return p[i]; });
  }
  static v16 load_first(const float* p, std::uint32_t count) {
    return each([=](std::uint32_t i) { return i < count ? p[i] : 0.0f; });
  }
  static v16 load_bf16(const std::uint16_t* p) {
    return each([=](std::uint32_t i) { return float_of(std::uint32_t{p[i]} << 16); });
  }
  static v16 load_lower_halves(const float* p) {
    return each([=](std::uint32_t i) { return float_of(bits_of(p[i]) << 16); });
  }
  static v16 load_upper_halves(const float* p) {
    return each([=](std::uint32_t i) { return float_of(bits_of(p[i]) & 0xffff0000u); });
  }
  void store(float* p) const { store_first(p, lanes); }
  void store_first(float* p, std::uint32_t count) const {
    for (std::uint32_t i = 0; i < count; ++i)
      p[i] = at[i];
  }

  static v16 fma(v16 a, v16 b, v16 c) {
    return each([&](std::uint32_t i) { return __builtin_fmaf(a.at[i], b.at[i], c.at[i]); });
  }
  void add_product(v16 a, v16 b) { *this = fma(a, b, *this); }
  static v16 max(v16 a, v16 b) {
    return each([&](std::uint32_t i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; });
  }
  static v16 min(v16 a, v16 b) {
    return each([&](std::uint32_t i) { return a.at[i] < b.at[i] ? a.at[i] : b.at[i]; });
  }
  friend v16 operator+(v16 a, v16 b) {
    return each([&](std::uint32_t i) { return a.at[i] + b.at[i]; });
  }
  friend v16 operator-(v16 a, v16 b) {
    return each([&](std::uint32_t i) { return a.at[i] - b.at[i]; });
  }
  friend v16 operator*(v16 a, v16 b) {
    return each([&](std::uint32_t i) { return a.at[i] * b.at[i]; });
  }
  friend v16 operator/(v16 a, v16 b) {
    return each([&](std::uint32_t i) { return a.at[i] / b.at[i]; });
  }

  /// The first `count` lanes of a, the others of b.
  static v16 first(v16 a, v16 b, std::uint32_t count) {
    return each([&](std::uint32_t i) { return i < count ? a.at[i] : b.at[i]; });
  }
  static v16 power_of_two(v16 shifted) {
    return each(
        [&](std::uint32_t i) { return float_of((bits_of(shifted.at[i]) << 23) + 0x3f800000u); });
  }

  float lane0() const { return at[0]; }
  float sum() const {
    v16 r = *this;
    for (std::uint32_t half = lanes / 2; half > 0; half /= 2)
      for (std::uint32_t i = 0; i < half; ++i)
        r.at[i] = r.at[i] + r.at[i + half];
    return r.at[0];
  }
  float largest() const {
    v16 r = *this;
    for (std::uint32_t half = lanes / 2; half > 0; half /= 2)
      for (std::uint32_t i = 0; i < half; ++i)
        r.at[i] = r.at[i] > r.at[i + half] ? r.at[i] : r.at[i + half];
    return r.at[0];
  }

  static std::uint16_t bf16_bits(float x) {
    const std::uint32_t bits = bits_of(x);
    if (x != x)
      return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  static v16 round_to_bf16(v16 a) {
    return each([&](std::uint32_t i) { return float_of(std::uint32_t{bf16_bits(a.at[i])} << 16); });
  }
};

} // namespace

const kernel_table scalar_kernels = make_table<v16>("scalar");

} // namespace tokenrouter::cpu
