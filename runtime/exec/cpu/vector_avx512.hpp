#pragma once

#include <cstdint>

#include <immintrin.h>

/// The vector type of the AVX-512 files; empty in a build without them. `Tag` is a type local to
/// the including file, so that the two files share no instantiation.
namespace tokenrouter::cpu {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)

#define TR_INLINE [[gnu::always_inline]] static inline

/// 16 lanes in one AVX-512 register.
template <class Tag>
struct vector_avx512 {
  using v16 = vector_avx512;
  __m512 all;

  static constexpr bool packs_operands = Tag::packs_operands;
  static constexpr int tile_rows_max = 8;
  static constexpr int panel_group = 6;
  /// Enough independent sums for two units of four cycles each, in 32 registers.
  static constexpr int tile_panels(int rows) {
    return rows == 1 ? 8 : rows == 2 ? 6 : rows <= 4 ? 4 : rows <= 6 ? 3 : 2;
  }

  TR_INLINE v16 zero() { return {_mm512_setzero_ps()}; }
  TR_INLINE v16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
  TR_INLINE v16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  TR_INLINE __mmask16 chosen(std::uint32_t count) {
    return static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << count) - 1u);
  }
  TR_INLINE v16 load_first(const float* p, std::uint32_t count) {
    return {_mm512_maskz_loadu_ps(chosen(count), p)};
  }
  TR_INLINE v16 load_bf16(const std::uint16_t* p) {
    const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16))};
  }
  TR_INLINE v16 load_lower_halves(const float* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
  }
  TR_INLINE v16 load_upper_halves(const float* p) {
    return {_mm512_castsi512_ps(
        _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
  [[gnu::always_inline]] inline void store(float* p) const { _mm512_storeu_ps(p, all); }
  [[gnu::always_inline]] inline void store_first(float* p, std::uint32_t count) const {
    _mm512_mask_storeu_ps(p, chosen(count), all);
  }

  TR_INLINE v16 fma(v16 a, v16 b, v16 c) { return {_mm512_fmadd_ps(a.all, b.all, c.all)}; }
  [[gnu::always_inline]] inline void add_product(v16 a, v16 b) { *this = fma(a, b, *this); }
  TR_INLINE v16 max(v16 a, v16 b) { return {_mm512_max_ps(a.all, b.all)}; }
  TR_INLINE v16 min(v16 a, v16 b) { return {_mm512_min_ps(a.all, b.all)}; }
  [[gnu::always_inline]] friend inline v16 operator+(v16 a, v16 b) {
    return {_mm512_add_ps(a.all, b.all)};
  }
  [[gnu::always_inline]] friend inline v16 operator-(v16 a, v16 b) {
    return {_mm512_sub_ps(a.all, b.all)};
  }
  [[gnu::always_inline]] friend inline v16 operator*(v16 a, v16 b) {
    return {_mm512_mul_ps(a.all, b.all)};
  }
  [[gnu::always_inline]] friend inline v16 operator/(v16 a, v16 b) {
    return {_mm512_div_ps(a.all, b.all)};
  }

  /// The first `count` lanes of a, the others of b.
  TR_INLINE v16 first(v16 a, v16 b, std::uint32_t count) {
    return {_mm512_mask_blend_ps(chosen(count), b.all, a.all)};
  }
  TR_INLINE v16 power_of_two(v16 shifted) {
    return {_mm512_castsi512_ps(_mm512_add_epi32(
        _mm512_slli_epi32(_mm512_castps_si512(shifted.all), 23), _mm512_set1_epi32(0x3f800000)))};
  }

  TR_INLINE __m256 upper(__m512 x) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
  }
  [[gnu::always_inline]] inline float lane0() const { return _mm512_cvtss_f32(all); }
  [[gnu::always_inline]] inline float sum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), upper(all));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  [[gnu::always_inline]] inline float largest() const {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(all), upper(all));
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
  /// Rounded bits in the upper halves of the words.
  TR_INLINE __m512i rounded_words(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x00400000));
    return _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), up, quiet);
  }
  TR_INLINE v16 round_to_bf16(v16 a) {
    return {_mm512_castsi512_ps(
        _mm512_and_si512(rounded_words(a.all), _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
  [[gnu::always_inline]] inline void store_bf16_first(std::uint16_t* p, std::uint32_t count) const {
    const __m256i halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded_words(all), 16));
    _mm256_mask_storeu_epi16(p, chosen(count), halves);
  }

#ifdef __AVX512BF16__
  using pairs = __m512i;
  TR_INLINE pairs load_pairs(const float* p) {
    return _mm512_loadu_si512(p);
  }
  TR_INLINE pairs broadcast_pair(const float* p, std::uint32_t kept) {
    std::uint32_t pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm512_set1_epi32(static_cast<int>(pair & kept));
  }
  TR_INLINE v16 dot_pairs(v16 sums, pairs a, pairs b) {
    return {_mm512_dpbf16_ps(sums.all, __builtin_bit_cast(__m512bh, a),
                             __builtin_bit_cast(__m512bh, b))};
  }
#endif
};

#undef TR_INLINE
#endif

} // namespace tokenrouter::cpu
