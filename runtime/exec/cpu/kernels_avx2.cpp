#include <immintrin.h>

#include "runtime/exec/cpu/make_table.hpp"

#define TR_INLINE [[gnu::always_inline]] static inline

namespace tokenrouter::cpu {
namespace {

alignas(32) constexpr std::int32_t lane_numbers[lanes] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                          8, 9, 10, 11, 12, 13, 14, 15};

/// 16 lanes in two AVX2 registers; fused multiply-add of FMA3.
struct v16 {
  __m256 low;
  __m256 high;

  static constexpr bool packs_operands = false;
  static constexpr int tile_rows_max = 6;
  static constexpr int panel_group = 4;
  /// Enough independent sums for two units of four cycles each, in 16 registers.
  static constexpr int tile_panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

  TR_INLINE v16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  TR_INLINE v16 broadcast(float x) {
    const __m256 all = _mm256_set1_ps(x);
    return {all, all};
  }
  TR_INLINE v16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  TR_INLINE __m256i chosen(std::uint32_t count, int from) {
    const __m256i numbers =
        _mm256_load_si256(reinterpret_cast<const __m256i*>(lane_numbers + from));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), numbers);
  }
  TR_INLINE v16 load_first(const float* p, std::uint32_t count) {
    if (count >= lanes)
      return load(p);
    return {_mm256_maskload_ps(p, chosen(count, 0)), _mm256_maskload_ps(p + 8, chosen(count, 8))};
  }
  TR_INLINE __m256 widen(const std::uint16_t* p) {
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
  }
  TR_INLINE v16 load_bf16(const std::uint16_t* p) { return {widen(p), widen(p + 8)}; }
  TR_INLINE __m256i words(const float* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  TR_INLINE v16 load_lower_halves(const float* p) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(words(p), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(words(p + 8), 16))};
  }
  TR_INLINE v16 load_upper_halves(const float* p) {
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm256_castsi256_ps(_mm256_and_si256(words(p), mask)),
            _mm256_castsi256_ps(_mm256_and_si256(words(p + 8), mask))};
  }
  [[gnu::always_inline]] inline void store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  [[gnu::always_inline]] inline void store_first(float* p, std::uint32_t count) const {
    if (count >= lanes)
      return store(p);
    _mm256_maskstore_ps(p, chosen(count, 0), low);
    _mm256_maskstore_ps(p + 8, chosen(count, 8), high);
  }

  TR_INLINE v16 fma(v16 a, v16 b, v16 c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  /// In place by force: left to itself the compiler adds into the factors' registers, then spills.
  [[gnu::always_inline]] inline void add_product(v16 a, v16 b) {
    asm("vfmadd231ps %2, %1, %0" : "+x"(low) : "x"(a.low), "x"(b.low));
    asm("vfmadd231ps %2, %1, %0" : "+x"(high) : "x"(a.high), "x"(b.high));
  }
  TR_INLINE v16 max(v16 a, v16 b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  TR_INLINE v16 min(v16 a, v16 b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  [[gnu::always_inline]] friend inline v16 operator+(v16 a, v16 b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  [[gnu::always_inline]] friend inline v16 operator-(v16 a, v16 b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  [[gnu::always_inline]] friend inline v16 operator*(v16 a, v16 b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  [[gnu::always_inline]] friend inline v16 operator/(v16 a, v16 b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }

  /// The first `count` lanes of a, the others of b.
  TR_INLINE v16 first(v16 a, v16 b, std::uint32_t count) {
    return {_mm256_blendv_ps(b.low, a.low, _mm256_castsi256_ps(chosen(count, 0))),
            _mm256_blendv_ps(b.high, a.high, _mm256_castsi256_ps(chosen(count, 8)))};
  }
  TR_INLINE __m256 power(__m256 shifted) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23),
                                                _mm256_set1_epi32(0x3f800000)));
  }
  TR_INLINE v16 power_of_two(v16 shifted) { return {power(shifted.low), power(shifted.high)}; }

  [[gnu::always_inline]] inline float lane0() const { return _mm256_cvtss_f32(low); }
  [[gnu::always_inline]] inline float sum() const {
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  [[gnu::always_inline]] inline float largest() const {
    const __m256 eight = _mm256_max_ps(low, high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  TR_INLINE std::uint16_t bf16_bits(float x) {
    const auto bits = __builtin_bit_cast(std::uint32_t, x);
    if (x != x)
      return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  TR_INLINE __m256 round_half(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const __m256i chosen_bits = _mm256_blendv_epi8(up, quiet, _mm256_castps_si256(nan));
    return _mm256_castsi256_ps(_mm256_and_si256(chosen_bits, mask));
  }
  TR_INLINE v16 round_to_bf16(v16 a) { return {round_half(a.low), round_half(a.high)}; }
};

} // namespace

const kernel_table avx2_kernels = make_table<v16>("avx2");

} // namespace tokenrouter::cpu
