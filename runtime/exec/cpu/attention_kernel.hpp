#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/exec/cpu/kernels.hpp"
#include "runtime/exec/cpu/row_kernels.hpp"

/// Attention over paged KV. Template code for the files of the instruction sets alone (see
/// gemm_kernel.hpp).
namespace tokenrouter::cpu {

/// 16 stored values from element `index`.
template <class V, storage S>
[[gnu::always_inline]] inline V load_kv(const std::byte* at, std::size_t index) {
  if constexpr (S == storage::f32)
    return V::load(reinterpret_cast<const float*>(at) + index);
  else
    return V::load_bf16(reinterpret_cast<const std::uint16_t*>(at) + index);
}

/// What a query carries from block to block.
template <class V>
struct running_softmax {
  float largest = 0;
  float sum = 0;
  float rescale = 0;                     ///< of what was summed before this block
  std::uint32_t positions = 0;           ///< of this block that the query sees
  alignas(64) float weights[lanes] = {}; ///< e^(score − largest) of this block
};

/// Raw products of Q queries with the 16 keys of a block, summed over dimensions in order.
template <class V, storage S, int Q>
void score_block(const attention_call& c, const std::byte* keys, const std::uint32_t* chosen,
                 running_softmax<V>* state) {
  V sums[Q];
  const float* q[Q];
#pragma GCC unroll 4
  for (int i = 0; i < Q; ++i) {
    sums[i] = V::zero();
    q[i] = c.queries[chosen[i]].q;
  }
  for (std::uint32_t d = 0; d < c.head_dim; ++d) {
    const V key = load_kv<V, S>(keys, std::size_t{d} * lanes);
#pragma GCC unroll 4
    for (int i = 0; i < Q; ++i)
      sums[i] = V::fma(V::broadcast(q[i][d]), key, sums[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < Q; ++i)
    (sums[i] * V::broadcast(c.scale)).store(state[chosen[i]].weights);
}

/// Turns the scores of a block into weights and moves the running maximum and sum on. Positions the
/// query does not see are replaced, not multiplied: their memory may hold anything.
template <class V>
[[gnu::always_inline]] inline void advance_softmax(running_softmax<V>& s, bool first) {
  const V scores = V::load(s.weights);
  const float block_largest =
      V::first(scores, V::broadcast(-__builtin_inff()), s.positions).largest();
  const float largest = first || block_largest > s.largest ? block_largest : s.largest;
  s.rescale = first ? 0.0f : exponential(V::broadcast(s.largest - largest)).lane0();
  const V weights = V::first(exponential(scores - V::broadcast(largest)), V::zero(), s.positions);
  weights.store(s.weights);
  s.sum = __builtin_fmaf(s.sum, s.rescale, weights.sum());
  s.largest = largest;
}

/// Adds a block's weighted values to D vectors of Q queries' sums, position by position.
template <class V, storage S, int Q, int D>
void add_values(const attention_call& c, const std::byte* values, const std::uint32_t* chosen,
                const running_softmax<V>* state, std::uint32_t column) {
  const std::uint32_t width = padded(c.head_dim);
  V sums[Q][D];
  std::uint32_t shared = lanes;
#pragma GCC unroll 2
  for (int i = 0; i < Q; ++i) {
    const running_softmax<V>& s = state[chosen[i]];
    if (s.positions < shared)
      shared = s.positions;
#pragma GCC unroll 4
    for (int v = 0; v < D; ++v)
      sums[i][v] =
          V::load(c.scratch + chosen[i] * width + column + v * lanes) * V::broadcast(s.rescale);
  }
  for (std::uint32_t t = 0; t < shared; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < D; ++v) {
      const V value = load_kv<V, S>(values, std::size_t{t} * width + column + v * lanes);
#pragma GCC unroll 2
      for (int i = 0; i < Q; ++i)
        sums[i][v] = V::fma(V::broadcast(state[chosen[i]].weights[t]), value, sums[i][v]);
    }
  }
#pragma GCC unroll 2
  for (int i = 0; i < Q; ++i) {
    const running_softmax<V>& s = state[chosen[i]];
    for (std::uint32_t t = shared; t < s.positions; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < D; ++v)
        sums[i][v] =
            V::fma(V::broadcast(s.weights[t]),
                   load_kv<V, S>(values, std::size_t{t} * width + column + v * lanes), sums[i][v]);
#pragma GCC unroll 4
    for (int v = 0; v < D; ++v)
      sums[i][v].store(c.scratch + chosen[i] * width + column + v * lanes);
  }
}

template <class V, storage S, int Q>
void add_all_values(const attention_call& c, const std::byte* values, const std::uint32_t* chosen,
                    const running_softmax<V>* state) {
  const std::uint32_t width = padded(c.head_dim);
  std::uint32_t column = 0;
  for (; column + 2 * lanes <= width; column += 2 * lanes)
    add_values<V, S, Q, 2>(c, values, chosen, state, column);
  if (column < width)
    add_values<V, S, Q, 1>(c, values, chosen, state, column);
}

template <class V, storage S>
void attend_block(const attention_call& c, const std::byte* block, const std::uint32_t* chosen,
                  std::uint32_t count, running_softmax<V>* state, bool first) {
  const std::byte* keys = block + c.k_offset;
  const std::byte* values = block + c.v_offset;
  std::uint32_t i = 0;
  for (; i + 4 <= count; i += 4)
    score_block<V, S, 4>(c, keys, chosen + i, state);
  for (; i + 2 <= count; i += 2)
    score_block<V, S, 2>(c, keys, chosen + i, state);
  if (i < count)
    score_block<V, S, 1>(c, keys, chosen + i, state);
  for (i = 0; i < count; ++i)
    advance_softmax<V>(state[chosen[i]], first);
  for (i = 0; i + 2 <= count; i += 2)
    add_all_values<V, S, 2>(c, values, chosen + i, state);
  if (i < count)
    add_all_values<V, S, 1>(c, values, chosen + i, state);
}

/// Blocks lie anywhere in memory, so only we know which bytes come next.
template <class V, storage S>
[[gnu::always_inline]] inline void fetch_early(const attention_call& c, const std::byte* block) {
  constexpr std::size_t cache_line = 64;
  const std::size_t key_bytes = std::size_t{c.head_dim} * lanes * element_bytes(S);
  const std::size_t value_bytes = std::size_t{padded(c.head_dim)} * lanes * element_bytes(S);
  for (std::size_t i = 0; i < key_bytes; i += cache_line)
    __builtin_prefetch(block + c.k_offset + i);
  for (std::size_t i = 0; i < value_bytes; i += cache_line)
    __builtin_prefetch(block + c.v_offset + i);
}

template <class V, storage S>
void attend(const attention_call& c) {
  const std::uint32_t width = padded(c.head_dim);
  running_softmax<V> state[attention_queries_max];
  std::uint32_t longest = 0;
  for (std::uint32_t i = 0; i < c.query_count; ++i) {
    if (c.queries[i].positions > longest)
      longest = c.queries[i].positions;
    for (std::uint32_t d = 0; d < width; d += lanes)
      V::zero().store(c.scratch + i * width + d);
  }
  for (std::uint32_t begin = 0; begin < longest; begin += lanes) {
    std::uint32_t chosen[attention_queries_max];
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < c.query_count; ++i) {
      if (c.queries[i].positions <= begin)
        continue;
      const std::uint32_t seen = c.queries[i].positions - begin;
      state[i].positions = seen < lanes ? seen : lanes;
      chosen[count++] = i;
    }
    const block_id* at = c.blocks + begin / lanes;
    const std::byte* block = c.pool + std::size_t{*at} * c.block_bytes;
    if (begin + lanes < longest)
      fetch_early<V, S>(c, c.pool + std::size_t{at[1]} * c.block_bytes);
    attend_block<V, S>(c, block, chosen, count, state, begin == 0);
  }
  for (std::uint32_t i = 0; i < c.query_count; ++i) {
    const V sum = V::broadcast(state[i].sum);
    for (std::uint32_t d = 0; d < c.head_dim; d += lanes)
      store_operand<V, S>(c.queries[i].out_row, c.queries[i].out_column + d,
                          V::load(c.scratch + i * width + d) / sum, columns_left<V>(c.head_dim, d));
  }
}

} // namespace tokenrouter::cpu
