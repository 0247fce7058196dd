#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/exec/cpu/kernels.hpp"

/// Kernels that work on one row of activations: exponential, norms, SwiGLU, rotation and the write
/// to the KV. Template code for the files of the instruction sets alone (see gemm_kernel.hpp).
namespace tokenrouter::cpu {

/// e^x within 2 units in the last place for x in [-87, 88], clamped to that range outside it. The
/// argument is split as n · ln 2 + r, |r| <= ln 2 / 2, and e^r is its Taylor polynomial of degree
/// 7, whose remainder is below 6e-9.
template <class V>
[[gnu::always_inline]] inline V exponential(V x) {
  x = V::min(V::broadcast(88.0f), V::max(V::broadcast(-87.0f), x));
  const V magic = V::broadcast(12582912.0f); // 1.5 · 2^23: adding it rounds to a whole number
  const V shifted = V::fma(x, V::broadcast(1.44269504088896341f), magic);
  const V n = shifted - magic;
  V r = V::fma(n, V::broadcast(-0.693145751953125f), x);
  r = V::fma(n, V::broadcast(-1.42860682030941723e-6f), r);
  V sum = V::broadcast(1.0f / 5040);
  sum = V::fma(sum, r, V::broadcast(1.0f / 720));
  sum = V::fma(sum, r, V::broadcast(1.0f / 120));
  sum = V::fma(sum, r, V::broadcast(1.0f / 24));
  sum = V::fma(sum, r, V::broadcast(1.0f / 6));
  sum = V::fma(sum, r, V::broadcast(0.5f));
  sum = V::fma(sum, r, V::broadcast(1.0f));
  sum = V::fma(sum, r, V::broadcast(1.0f));
  return sum * V::power_of_two(shifted);
}

/// Writes `count` (1 … 16) values at `column` of an operand row.
template <class V, storage S>
[[gnu::always_inline]] inline void store_operand(float* row, std::uint32_t column, V value,
                                                 std::uint32_t count) {
  if constexpr (S == storage::f32)
    value.store_first(row + column, count);
  else if constexpr (V::packs_operands)
    value.store_bf16_first(reinterpret_cast<std::uint16_t*>(row) + column, count);
  else
    V::round_to_bf16(value).store_first(row + column, count);
}

template <class V>
[[gnu::always_inline]] inline std::uint32_t columns_left(std::uint32_t columns, std::uint32_t at) {
  return columns - at < lanes ? columns - at : lanes;
}

/// 1 / sqrt(mean(x²) + eps): 16 partial sums over columns 16 apart, then a fixed tree.
template <class V>
[[gnu::always_inline]] inline float norm_factor(const float* x, std::uint32_t columns, float eps) {
  V sums = V::zero();
  for (std::uint32_t i = 0; i < columns; i += lanes) {
    const V value = V::load_first(x + i, columns_left<V>(columns, i));
    sums = V::fma(value, value, sums);
  }
  return 1.0f / __builtin_sqrtf(sums.sum() / static_cast<float>(columns) + eps);
}

template <class V>
void norm(const norm_call& c) {
  const V factor = V::broadcast(norm_factor<V>(c.x, c.columns, c.eps));
  for (std::uint32_t i = 0; i < c.columns; i += lanes) {
    const std::uint32_t count = columns_left<V>(c.columns, i);
    const V value = V::load_first(c.x + i, count) * factor;
    (value * V::load_first(c.weight + i, count)).store_first(c.out + i, count);
  }
}

template <class V, storage S>
void norm_operand(const norm_call& c) {
  const V factor = V::broadcast(norm_factor<V>(c.x, c.columns, c.eps));
  for (std::uint32_t i = 0; i < c.columns; i += lanes) {
    const std::uint32_t count = columns_left<V>(c.columns, i);
    const V value = V::load_first(c.x + i, count) * factor;
    store_operand<V, S>(c.out, i, value * V::load_first(c.weight + i, count), count);
  }
}

template <class V, storage S>
void to_operand(const float* x, float* operand, std::uint32_t columns) {
  for (std::uint32_t i = 0; i < columns; i += lanes) {
    const std::uint32_t count = columns_left<V>(columns, i);
    store_operand<V, S>(operand, i, V::load_first(x + i, count), count);
  }
}

template <class V, storage S>
void swiglu(const swiglu_call& c) {
  for (std::uint32_t panel = c.panel_begin; panel < c.panel_end; ++panel) {
    const float* at = c.gate_up + std::size_t{panel} * 2 * lanes;
    const V gate = V::load(at);
    const V up = V::load(at + lanes);
    const V sigmoid_inverse = V::broadcast(1.0f) + exponential(V::zero() - gate);
    store_operand<V, S>(c.operand, panel * lanes, gate / sigmoid_inverse * up, lanes);
  }
}

/// Norm (where there is a weight) and rotation of one head, halves paired as (d, d + head_dim / 2).
template <class V>
[[gnu::always_inline]] inline void rotate_head(const float* x, const float* weight,
                                               const rotate_call& c, float* out) {
  const std::uint32_t half = c.head_dim / 2;
  const V factor = V::broadcast(weight ? norm_factor<V>(x, c.head_dim, c.eps) : 1.0f);
  for (std::uint32_t i = 0; i < half; i += lanes) {
    const std::uint32_t count = columns_left<V>(half, i);
    V low = V::load_first(x + i, count);
    V high = V::load_first(x + half + i, count);
    if (weight) {
      low = low * factor * V::load_first(weight + i, count);
      high = high * factor * V::load_first(weight + half + i, count);
    }
    const V cosine = V::load_first(c.cosines + i, count);
    const V sine = V::load_first(c.sines + i, count);
    (low * cosine - high * sine).store_first(out + i, count);
    (high * cosine + low * sine).store_first(out + half + i, count);
  }
}

template <class V, storage S>
[[gnu::always_inline]] inline void store_kv(std::byte* at, std::size_t index, float value) {
  if constexpr (S == storage::f32)
    reinterpret_cast<float*>(at)[index] = value;
  else
    reinterpret_cast<std::uint16_t*>(at)[index] = V::bf16_bits(value);
}

/// Keys lie with positions innermost, so that one vector load meets 16 positions; values with
/// dimensions innermost.
template <class V, storage S>
void rotate(const rotate_call& c) {
  for (std::uint32_t head = 0; head < c.heads; ++head)
    rotate_head<V>(c.qkv + head * c.head_dim, c.q_norm, c, c.q_out + head * c.head_dim);
  const float* keys = c.qkv + c.heads * c.head_dim;
  const float* values = keys + c.kv_heads * c.head_dim;
  constexpr std::uint32_t piece = 512;
  float rotated[piece];
  for (std::uint32_t head = 0; head < c.kv_heads; ++head) {
    rotate_head<V>(keys + head * c.head_dim, c.k_norm, c, rotated);
    for (std::uint32_t d = 0; d < c.head_dim; ++d) {
      store_kv<V, S>(c.k_block, (std::size_t{head} * c.head_dim + d) * lanes + c.slot, rotated[d]);
      store_kv<V, S>(c.v_block, (std::size_t{head} * lanes + c.slot) * padded(c.head_dim) + d,
                     values[head * c.head_dim + d]);
    }
  }
}

} // namespace tokenrouter::cpu
