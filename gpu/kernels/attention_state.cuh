#pragma once

#include "gpu/kernels/launch.cuh"

/// The running softmax of a warp over 16 rows of queries and tiles of 16 positions.
namespace tokenrouter::gpu {

/// Values are the B operand of sums: `width` neighbouring dimensions of a token are as many column
/// tiles, column n of tile j being dimension width · n + j (of 8 · width); `halves` such groups, or
/// so many of them as a warp holds.
template <int head_dim, int halves_held = (head_dim + 63) / 64>
struct warp_state {
  static constexpr int width = head_dim >= 64 ? 8 : head_dim / 8;
  static constexpr int halves = halves_held;
  float sums[halves][width][4] = {};
  float largest[2] = {-INFINITY, -INFINITY}; ///< of rows lane / 4 and that + 8, base-2 scores
  float total[2] = {0, 0};                   ///< this lane's part
};

/// Turns scores into weights, keeps the running softmax.
template <int head_dim, int halves>
__device__ void weigh(warp_state<head_dim, halves>& s, float (&scores)[2][4], float scale,
                      int first_position, const int (&last_position)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float most = s.largest[row];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int position = first_position + i / 2 * 8 + lane % 4 * 2 + i % 2;
      float& value = scores[i / 2][row * 2 + i % 2];
      value = position <= last_position[row] ? value * scale : -INFINITY;
      most = fmaxf(most, value);
    }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    const float bound = most == -INFINITY ? 0.0f : most; // a row that sees nothing here yet
    const float shrink = power_of_two(s.largest[row] - bound);
    s.largest[row] = most;
    s.total[row] *= shrink;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& value = scores[i / 2][row * 2 + i % 2];
      value = power_of_two(value - bound);
      s.total[row] += value;
    }
#pragma unroll
    for (int half = 0; half < halves; ++half)
#pragma unroll
      for (int j = 0; j < warp_state<head_dim, halves>::width; ++j) {
        s.sums[half][j][row * 2] *= shrink;
        s.sums[half][j][row * 2 + 1] *= shrink;
      }
  }
}

__device__ inline unsigned word(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/// Sums of one group of dimensions: `v` is of tokens 2t, 2t + 1, 2t + 8, 2t + 9 with t = lane % 4,
/// `weights` as the scores' accumulators hold them, packed.
template <int width>
__device__ void add_weighted(float (&sums)[width][4], const unsigned (&weights)[4],
                             const uint4 (&v)[4]) {
#pragma unroll
  for (int j = 0; j < width; ++j) {
    const unsigned halves = j % 2 == 0 ? 0x5410 : 0x7632;
    multiply_add(sums[j], weights, __byte_perm(word(v[0], j / 2), word(v[1], j / 2), halves),
                 __byte_perm(word(v[2], j / 2), word(v[3], j / 2), halves));
  }
}

__device__ inline void pack_weights(const float (&weights)[2][4], unsigned (&p)[4]) {
  p[0] = pack_bf16(weights[0][0], weights[0][1]);
  p[1] = pack_bf16(weights[0][2], weights[0][3]);
  p[2] = pack_bf16(weights[1][0], weights[1][1]);
  p[3] = pack_bf16(weights[1][2], weights[1][3]);
}

} // namespace tokenrouter::gpu
