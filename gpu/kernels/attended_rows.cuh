#pragma once

#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {

/// Writes what a warp attended for its 16 rows, of which those from `first_row` on below `rows` are
/// there. `totals`: this thread's parts of the sums of weights of rows lane / 4 and that + 8;
/// `sum_at(tile, i)`: sum i of 8 dimensions' tile, as the tensor cores leave it.
template <int head_dim, class SumAt>
__device__ void write_attended(const SumAt& sum_at, const float (&totals)[2], bf16* out,
                               std::uint64_t stride, int first_row, int rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    float total = totals[side];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    const float factor = 1.0f / total;
    const int row = first_row + lane / 4 + side * 8;
    if (row >= rows)
      continue;
    unsigned* to = reinterpret_cast<unsigned*>(out + row * stride);
#pragma unroll
    for (int tile = 0; tile < head_dim / 8; ++tile)
      to[tile * 4 + lane % 4] =
          pack_bf16(sum_at(tile, side * 2) * factor, sum_at(tile, side * 2 + 1) * factor);
  }
}

} // namespace tokenrouter::gpu
