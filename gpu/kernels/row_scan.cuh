#pragma once

#include "gpu/kernels/draw.hpp"
#include "gpu/kernels/launch.cuh"
#include "gpu/kernels/row_cluster.cuh"
#include "gpu/kernels/row_select.cuh"

/// One pass of a cluster of thread blocks over a row of logits.
namespace tokenrouter::gpu {

/// A row is shared by a cluster of thread blocks up to the point where its largest entries are
/// known: all those above a bound, so that sorted they are the beginning of the descending order.
/// The first block does the rest, and turns to the whole row only for what lies beyond them.
constexpr int cluster_blocks_max = 8;
constexpr int candidates_of_block = 512;
constexpr int candidates_max = cluster_blocks_max * candidates_of_block;

/// Of one block or of all.
struct row_extremes {
  std::uint64_t best; ///< candidate of the largest entry, smallest token first
  unsigned nans;
  float bound; ///< so many entries as wanted are not below it
};

struct row_sums {
  double sum;      ///< Σ e^(z − largest)
  double weighted; ///< Σ e^(z − largest) · (z − largest)
  double total;    ///< Σ e^((z − largest) / temperature)
};

struct block_memory {
  union {
    select_memory select;
    double weights[candidates_max];
    std::uint64_t spare[candidates_max];
  };
  std::uint64_t candidates[candidates_max]; ///< of the first block; else the first 512 of its own
  int candidate_count;                      ///< of this block; above its room: it overflowed
  int spare_count;
  row_extremes own_extremes; ///< of this block: other blocks read them
  row_sums own_sums;
  std::uint64_t mixed_best;
  std::uint64_t scratch_u64[32];
  double scratch[3][32];
  drawn_row out;
};
static_assert(sizeof(block_memory) <= shared_bytes_everywhere);

__device__ inline std::uint64_t block_most(std::uint64_t x, std::uint64_t* scratch) {
  for (int step = 16; step > 0; step /= 2) {
    const std::uint64_t other = __shfl_xor_sync(0xffffffffu, x, step);
    x = other > x ? other : x;
  }
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = x;
  __syncthreads();
  for (int i = 0; i < draw_threads / 32; ++i)
    x = scratch[i] > x ? scratch[i] : x;
  return x;
}

/// The `place`-th largest of the threads' keys (from 1), its low bits cut: a lower bound of it. All
/// threads take part.
__device__ inline std::uint32_t bound_of_keys(std::uint32_t key, int place) {
  constexpr int bits_told_apart = 18;
  std::uint32_t bound = 0;
  for (int bit = 31; bit > 31 - bits_told_apart; --bit) {
    const std::uint32_t higher = bound | 1u << bit;
    if (__syncthreads_count(key >= higher) >= place)
      bound = higher;
  }
  return bound;
}

/// The part of a row that belongs to this block. Where it fits, a thread holds its entries.
struct row_slice {
  static constexpr int held_quads = 10;
  const float* row;
  int begin, end;
  bool in_fours; ///< `row` is aligned to 16 bytes, `begin` and `end` are multiples of 4
  bool is_held;
  float4 held[held_quads];

  __device__ void open(const float* logits, int count, bool aligned, unsigned block,
                       unsigned blocks) {
    const int four = static_cast<int>(4 * blocks);
    const int share = (count + four - 1) / four * 4;
    row = logits;
    begin = min(static_cast<int>(block) * share, count);
    end = min(begin + share, count);
    in_fours = aligned;
    is_held = aligned && end - begin <= 4 * held_quads * draw_threads;
    if (!is_held)
      return;
#pragma unroll
    for (int k = 0; k < held_quads; ++k)
      if (const int i = quad(k); i < end / 4)
        held[k] = __ldcg(reinterpret_cast<const float4*>(row) + i);
  }

  __device__ int quad(int k) const {
    return begin / 4 + static_cast<int>(threadIdx.x) + k * draw_threads;
  }

  template <class F>
  __device__ static void each_of(const float4& z, int i, const F& f) {
    const auto token = static_cast<std::uint32_t>(i) * 4;
    f(z.x, token);
    f(z.y, token + 1);
    f(z.z, token + 2);
    f(z.w, token + 3);
  }

  template <class F>
  __device__ void each(const F& f) const {
    if (is_held) {
#pragma unroll
      for (int k = 0; k < held_quads; ++k)
        if (const int i = quad(k); i < end / 4)
          each_of(held[k], i, f);
      return;
    }
    if (in_fours) {
#pragma unroll 4
      for (int i = quad(0); i < end / 4; i += draw_threads)
        each_of(__ldcg(reinterpret_cast<const float4*>(row) + i), i, f);
      return;
    }
    for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += draw_threads)
      f(__ldcg(row + i), static_cast<std::uint32_t>(i));
  }
};

/// Largest entry of the row, number of NaN, and a bound that at least `place` entries reach (0:
/// none is wanted).
__device__ inline row_extremes find_extremes(const cg::cluster_group& cluster,
                                             const row_slice& slice, int place, block_memory& m) {
  std::uint64_t best = 0;
  int nans = 0;
  slice.each([&](float z, std::uint32_t token) {
    const std::uint64_t c = candidate(z, token);
    best = c > best ? c : best;
    nans += isnan(z);
  });
  const auto largest_key = static_cast<std::uint32_t>(best >> 32);
  const std::uint32_t bound = place > 0 ? bound_of_keys(largest_key, place) : 0;
  for (int step = 16; step > 0; step /= 2)
    nans += __shfl_xor_sync(0xffffffffu, nans, step);
  if (threadIdx.x == 0)
    m.own_extremes.nans = 0;
  best = block_most(best, m.scratch_u64);
  if (threadIdx.x % 32 == 0 && nans > 0)
    atomicAdd(&m.own_extremes.nans, static_cast<unsigned>(nans));
  if (threadIdx.x == 0) {
    m.own_extremes.best = best;
    m.own_extremes.bound = place == 0                   ? INFINITY
                           : bound <= key_of(-INFINITY) ? -INFINITY
                                                        : value_of(bound);
    m.candidate_count = 0;
  }
  cluster.sync();
  row_extremes all{0, 0, -INFINITY};
  for (unsigned i = 0; i < cluster.num_blocks(); ++i) {
    const row_extremes other = *cluster.map_shared_rank(&m.own_extremes, i);
    all.best = other.best > all.best ? other.best : all.best;
    all.bound = fmaxf(all.bound, other.bound);
    all.nans += other.nans;
  }
  return all;
}

__device__ inline float largest_of(const row_extremes& e) {
  return e.best >> 32 == 0 ? -INFINITY : logit_of(e.best);
}

/// Softmax sums of the row; this block's entries from the bound on go to its candidates.
__device__ inline row_sums add_up(const cg::cluster_group& cluster, const row_slice& slice,
                                  const row_extremes& extremes, float temperature, bool collect,
                                  block_memory& m) {
  const float largest = largest_of(extremes);
  const bool infinite = isinf(largest);
  const float inverse = temperature > 0 ? 1.0f / temperature : 0.0f;
  double sums[3] = {0, 0, 0};
  slice.each([&](float z, std::uint32_t token) {
    if (infinite) {
      sums[0] += largest < 0 || z == largest;
      return;
    }
    if (isnan(z))
      return;
    const float y = z - largest, e = expf(y);
    sums[0] += double{e};
    sums[1] += double{e} * double{y > -87.0f ? y : -87.0f};
    if (temperature > 0)
      sums[2] += double{expf(y * inverse)};
    if (collect && z >= extremes.bound)
      if (const int at = atomicAdd(&m.candidate_count, 1); at < candidates_of_block)
        m.candidates[at] = candidate(z, token);
  });
  for (int k = 0; k < 3; ++k) {
    for (int step = 16; step > 0; step /= 2)
      sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], step);
    if (threadIdx.x % 32 == 0)
      m.scratch[k][threadIdx.x / 32] = sums[k];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    row_sums own{0, 0, 0};
    for (int i = 0; i < draw_threads / 32; ++i) {
      own.sum += m.scratch[0][i];
      own.weighted += m.scratch[1][i];
      own.total += m.scratch[2][i];
    }
    m.own_sums = own;
  }
  cluster.sync();
  row_sums all{0, 0, 0};
  for (unsigned i = 0; i < cluster.num_blocks(); ++i) {
    const row_sums other = *cluster.map_shared_rank(&m.own_sums, i);
    all.sum += other.sum;
    all.weighted += other.weighted;
    all.total += other.total;
  }
  return all;
}

/// Leaves of the first `count` candidates those that may be among the `place` largest, sorted: the
/// beginning of the descending order. Their number.
__device__ inline int thin_out(int count, int place, block_memory& m) {
  std::uint32_t largest = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += draw_threads)
    largest = max(largest, static_cast<std::uint32_t>(m.candidates[i] >> 32));
  const std::uint64_t bound = std::uint64_t{bound_of_keys(largest, place)} << 32;
  if (threadIdx.x == 0)
    m.spare_count = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += draw_threads)
    if (m.candidates[i] >= bound)
      m.spare[atomicAdd(&m.spare_count, 1)] = m.candidates[i];
  __syncthreads();
  const int left = m.spare_count;
  int size = 2;
  while (size < left)
    size *= 2;
  for (int i = static_cast<int>(threadIdx.x); i < size; i += draw_threads)
    m.candidates[i] = i < left ? m.spare[i] : 0;
  __syncthreads();
  sort_descending(m.candidates, size);
  return left;
}

/// Brings the candidates of all blocks to the first and sorts the largest. Their number, at least
/// `place` unless there are not so many; −1 if there was no room for some. For the first block.
__device__ inline int gather_candidates(const cg::cluster_group& cluster, int place,
                                        block_memory& m) {
  int count = 0;
  bool overflow = false;
  for (unsigned i = 0; i < cluster.num_blocks(); ++i) {
    const int here = *cluster.map_shared_rank(&m.candidate_count, i);
    overflow = overflow || here > candidates_of_block;
    const int taken = min(here, candidates_of_block);
    const std::uint64_t* from = cluster.map_shared_rank(m.candidates, i);
    if (i > 0)
      for (int k = static_cast<int>(threadIdx.x); k < taken; k += draw_threads)
        m.candidates[count + k] = from[k];
    count += taken;
  }
  __syncthreads();
  return overflow ? -1 : thin_out(count, place, m);
}

} // namespace tokenrouter::gpu
