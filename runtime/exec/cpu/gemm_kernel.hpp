#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/exec/cpu/kernels.hpp"

/// Matrix product over weight panels, in tiles of R rows by P panels held in registers. Template
/// code for the files of the instruction sets alone: `V` is a vector type local to such a file, so
/// that no instantiation is shared with a file built for another processor.
namespace tokenrouter::cpu {

/// Weights stream past once a step: fetches what a panel needs some lines later (a line is 16
/// columns of float32, or of two bf16).
[[gnu::always_inline]] inline void fetch_early(const float* w) {
  __builtin_prefetch(w + 16 * lanes);
}

template <class V, int R, int P>
struct accumulators {
  V at[R][P];
};

template <class V, int R, int P>
[[gnu::always_inline]] inline void store_tile(const gemm_call& c, std::uint32_t row,
                                              std::uint32_t panel,
                                              const accumulators<V, R, P>& sums) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const std::size_t column = std::size_t{panel + static_cast<std::uint32_t>(p)} * lanes;
      float* out = c.out + (row + static_cast<std::uint32_t>(r)) * c.out_stride + column;
      V sum = sums.at[r][p];
      if (c.bias)
        sum = sum + V::load(c.bias + column);
      if (c.accumulate)
        sum = V::load(out) + sum;
      sum.store(out);
    }
  }
}

template <class V, int R, int P>
void tile_f32(const gemm_call& c, std::uint32_t row, std::uint32_t panel) {
  const std::size_t stride = panel_bytes(storage::f32, c.k) / sizeof(float);
  const float* w = reinterpret_cast<const float*>(c.panels) + panel * stride;
  const float* x = c.operand + row * c.operand_stride;
  accumulators<V, R, P> sums;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p)
      sums.at[r][p] = V::zero();
  for (std::uint32_t i = 0; i < c.k; ++i, w += lanes, ++x) {
    V weight[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      if constexpr (R > 1)
        fetch_early(w + p * stride);
      weight[p] = V::load(w + p * stride);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V input = V::broadcast(x[r * c.operand_stride]);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p)
        sums.at[r][p].add_product(weight[p], input);
    }
  }
  store_tile(c, row, panel, sums);
}

/// One of the two inputs of a pair: Odd selects the upper half of each 32-bit weight lane.
template <class V, int R, int P, bool Odd>
[[gnu::always_inline]] inline void add_half_pair(const float* w, std::size_t stride, const float* x,
                                                 std::size_t x_stride,
                                                 accumulators<V, R, P>& sums) {
  V weight[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p)
    weight[p] = Odd ? V::load_upper_halves(w + p * stride) : V::load_lower_halves(w + p * stride);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const V input = V::broadcast(x[r * x_stride + (Odd ? 1 : 0)]);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p)
      sums.at[r][p].add_product(weight[p], input);
  }
}

/// Both inputs of a pair at once; `kept` masks the bits of the operand that exist.
template <class V, int R, int P>
[[gnu::always_inline]] inline void
add_packed_pair(const float* w, std::size_t stride, const float* x, std::size_t x_stride,
                std::uint32_t kept, accumulators<V, R, P>& sums) {
  typename V::pairs weight[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    fetch_early(w + p * stride);
    weight[p] = V::load_pairs(w + p * stride);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const auto input = V::broadcast_pair(x + r * x_stride, kept);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p)
      sums.at[r][p] = V::dot_pairs(sums.at[r][p], weight[p], input);
  }
}

template <class V, int R, int P>
void tile_bf16(const gemm_call& c, std::uint32_t row, std::uint32_t panel) {
  const std::size_t stride = panel_bytes(storage::bf16, c.k) / sizeof(float);
  const float* w = reinterpret_cast<const float*>(c.panels) + panel * stride;
  accumulators<V, R, P> sums;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p)
      sums.at[r][p] = V::zero();
  if constexpr (V::packs_operands) {
    const float* x = c.operand + row * c.operand_stride;
    for (std::uint32_t pair = 0; pair < c.k / 2; ++pair, w += lanes, ++x)
      add_packed_pair<V, R, P>(w, stride, x, c.operand_stride, 0xffffffffu, sums);
    if (c.k % 2)
      add_packed_pair<V, R, P>(w, stride, x, c.operand_stride, 0x0000ffffu, sums);
  } else {
    const float* x = c.operand + row * c.operand_stride;
    for (std::uint32_t pair = 0; pair < c.k / 2; ++pair, w += lanes, x += 2) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p)
        fetch_early(w + p * stride);
      add_half_pair<V, R, P, true>(w, stride, x, c.operand_stride, sums);
      // Hides that both halves come from the same words: loading twice is cheaper than the
      // registers that keeping them would take.
      asm("" : "+r"(w));
      add_half_pair<V, R, P, false>(w, stride, x, c.operand_stride, sums);
    }
    if (c.k % 2)
      add_half_pair<V, R, P, false>(w, stride, x, c.operand_stride, sums);
  }
  store_tile(c, row, panel, sums);
}

template <class V, storage S, int R, int P>
[[gnu::always_inline]] inline void tile(const gemm_call& c, std::uint32_t row,
                                        std::uint32_t panel) {
  if constexpr (S == storage::f32)
    tile_f32<V, R, P>(c, row, panel);
  else
    tile_bf16<V, R, P>(c, row, panel);
}

/// R rows by panels [begin, end): as wide as the registers allow, narrower at the end.
template <class V, storage S, int R>
void row_tile(const gemm_call& c, std::uint32_t row, std::uint32_t begin, std::uint32_t end) {
  constexpr int wide = V::tile_panels(R);
  std::uint32_t panel = begin;
  for (; panel + wide <= end; panel += wide)
    tile<V, S, R, wide>(c, row, panel);
  if constexpr (wide > 4)
    for (; panel + 4 <= end; panel += 4)
      tile<V, S, R, 4>(c, row, panel);
  if constexpr (wide > 2)
    for (; panel + 2 <= end; panel += 2)
      tile<V, S, R, 2>(c, row, panel);
  if constexpr (wide > 1)
    for (; panel < end; ++panel)
      tile<V, S, R, 1>(c, row, panel);
}

template <class V, storage S>
void row_tile_of(std::uint32_t tile_rows, const gemm_call& c, std::uint32_t row,
                 std::uint32_t begin, std::uint32_t end) {
  static_assert(V::tile_rows_max == 6 || V::tile_rows_max == 8);
  switch (tile_rows) {
  case 1:
    return row_tile<V, S, 1>(c, row, begin, end);
  case 2:
    return row_tile<V, S, 2>(c, row, begin, end);
  case 3:
    return row_tile<V, S, 3>(c, row, begin, end);
  case 4:
    return row_tile<V, S, 4>(c, row, begin, end);
  case 5:
    return row_tile<V, S, 5>(c, row, begin, end);
  case 6:
    return row_tile<V, S, 6>(c, row, begin, end);
  }
  if constexpr (V::tile_rows_max == 8) {
    if (tile_rows == 7)
      return row_tile<V, S, 7>(c, row, begin, end);
    return row_tile<V, S, 8>(c, row, begin, end);
  }
}

/// Rows are cut into tiles of nearly equal height. Few tiles: each runs over all panels. Several:
/// a group of panels stays in the cache while all tiles pass over it.
template <class V, storage S>
void gemm(const gemm_call& c) {
  const std::uint32_t tiles = (c.rows + V::tile_rows_max - 1) / V::tile_rows_max;
  if (tiles == 0)
    return;
  const std::uint32_t group = tiles == 1 ? c.panel_end - c.panel_begin : V::panel_group;
  for (std::uint32_t panel = c.panel_begin; panel < c.panel_end; panel += group) {
    const std::uint32_t end = panel + group < c.panel_end ? panel + group : c.panel_end;
    std::uint32_t row = 0;
    for (std::uint32_t t = 0; t < tiles; ++t) {
      const std::uint32_t tile_rows = c.rows / tiles + (t < c.rows % tiles ? 1 : 0);
      row_tile_of<V, S>(tile_rows, c, row, panel, end);
      row += tile_rows;
    }
  }
}

} // namespace tokenrouter::cpu
