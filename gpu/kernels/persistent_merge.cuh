#pragma once

#include "gpu/kernels/persistent_block.cuh"

namespace tokenrouter::gpu {

/// Merges units that came in several pieces; a warp takes 32 dimensions of a head of a token, half
/// of it every other piece.
template <int head_dim, class Memory>
__device__ void merge_pieces(const Memory& m, const persistent_call& c, const exchange_words& words,
                             unsigned tag, unsigned tokens) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr unsigned parts = head_dim / 32;
  const unsigned heads = c.shape.heads, heads_each = heads / c.shape.kv_heads;
  const unsigned jobs = tokens * heads * parts;
#pragma unroll 1
  for (unsigned job = blockIdx.x + gridDim.x * warp; job < jobs;
       job += gridDim.x * persistent_warps) {
    const unsigned token = job / (heads * parts), head = job / parts % heads;
    const int pieces = m.piece_count[token];
    if (pieces <= 1)
      continue;
    const std::uint64_t stride = std::uint64_t{c.shape.kv_heads} * 16;
    const std::uint64_t first = std::uint64_t(m.partial[token]) * stride + head / heads_each * 16 +
                                m.first_row[token] + head % heads_each;
    const unsigned at = job % parts * 32 + lane % 16 * 2;
    const float* sums = c.exchange.sums + first * head_dim + at;
    const float* bounds = c.exchange.bounds + first * 2;
    const tagged_words ready{tag};
    float most = -1e30f, total = 0;
    float2 sum = make_float2(0, 0);
#pragma unroll 1
    for (int begin = 0; begin < pieces; begin += 32) {
      constexpr int step = 16;
      const int mine = begin + static_cast<int>(lane);
      uint2 bound = make_uint2(0, 0), part[step] = {};
      const auto of = [&](int i) { return begin + i * 2 + static_cast<int>(lane / 16); };
      bool all;
      do {
        if (mine < pieces)
          bound = read_shared_pair(bounds + mine * stride * 2);
#pragma unroll
        for (int i = 0; i < step; ++i)
          if (of(i) < pieces)
            part[i] = read_shared_pair(sums + of(i) * stride * head_dim);
        all = mine >= pieces || (ready(bound.x) && ready(bound.y));
#pragma unroll
        for (int i = 0; i < step; ++i)
          all = all && (of(i) >= pieces || (ready(part[i].x) && ready(part[i].y)));
      } while (!__all_sync(0xffffffffu, all));
      const float here = mine < pieces ? __uint_as_float(bound.x) : -1e30f;
      float largest = fmaxf(here, most);
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
      const float shrink = power_of_two(most - largest);
      const float share = mine < pieces ? power_of_two(here - largest) : 0.0f;
      most = largest;
      total = total * shrink + warp_sum(share * __uint_as_float(bound.y));
      sum.x *= shrink;
      sum.y *= shrink;
#pragma unroll
      for (int i = 0; i < step; ++i) {
        const float factor = __shfl_sync(0xffffffffu, share, i * 2 + static_cast<int>(lane / 16));
        sum.x += __uint_as_float(part[i].x) * factor; // of pieces that there aren't: zero
        sum.y += __uint_as_float(part[i].y) * factor;
      }
    }
    sum.x += __shfl_xor_sync(0xffffffffu, sum.x, 16);
    sum.y += __shfl_xor_sync(0xffffffffu, sum.y, 16);
    if (lane < 16)
      write_bf16_pair(words.attended(token) + (head * head_dim + at) / 2, sum.x / total,
                      sum.y / total);
  }
}

} // namespace tokenrouter::gpu
