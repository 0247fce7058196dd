#pragma once

#include "gpu/kernels/row_scan.cuh"

/// Draws of one row, by the first thread block of its cluster.
namespace tokenrouter::gpu {

/// Entries that are sorted for a draw at a temperature, at least.
constexpr int drawn_candidates = 64;

struct draw_state {
  const float* row;
  int count;
  draw_order order;
  int candidates; ///< sorted
  float largest;
  double total; ///< Σ e^((z − largest) / temperature)

  /// As a whole number: 2^40 for the largest entry.
  __device__ std::uint64_t amount(float z) const {
    if (isnan(z))
      return 0;
    const double w =
        z == largest ? 1.0 : exp((double{z} - double{largest}) / double{order.temperature});
    return static_cast<std::uint64_t>(w * 0x1p40);
  }
};

/// A draw that looks only at the sorted candidates; −1 if it would need more. One thread.
__device__ inline int draw_of_candidates(const draw_state& s, const block_memory& m) {
  const bool truncates = s.order.top_k > 0 && s.order.top_k < s.count;
  const int known = s.candidates;
  int kept = s.count;
  double total = s.total;
  if (truncates) {
    kept = s.order.top_k;
    if (kept > known)
      return -1;
    total = 0;
    for (int i = 0; i < kept; ++i)
      total += m.weights[i];
  }
  if (s.order.top_p < 1.0f) {
    const double wanted = double{s.order.top_p} * total;
    double reached = m.weights[0];
    int count = 1;
    while (count < kept && reached < wanted) {
      if (count == known)
        return -1;
      reached += m.weights[count++];
    }
    kept = count;
    total = reached;
  }
  if (s.order.min_p > 0.0f) {
    double reached = 0;
    int count = 0;
    while (count < kept &&
           (count < known ? count == 0 || m.weights[count] >= double{s.order.min_p} : true)) {
      if (count == known)
        return -1;
      reached += m.weights[count++];
    }
    kept = count;
    total = reached;
  }
  const double target = double{s.order.uniform} * total;
  double reached = 0;
  for (int i = 0; i < kept; ++i) {
    if (i == known)
      return -1;
    reached += m.weights[i];
    if (reached > target)
      return static_cast<int>(token_of(m.candidates[i]));
  }
  return static_cast<int>(token_of(m.candidates[kept - 1]));
}

/// A draw over the whole row, by the first thread block.
__device__ inline int draw_of_row(const draw_state& s, select_memory& m) {
  const auto amount = [&](float z) { return s.amount(z); };
  std::uint64_t total;
  if (s.order.top_k > 0 && s.order.top_k < s.count) {
    const auto one = [](float z) { return std::uint64_t{!isnan(z)}; };
    const auto kth = find_crossing(s.row, s.count, one, std::uint64_t(s.order.top_k) - 1, m);
    const auto above = [&](float z) { return key_of(z) > kth.key ? s.amount(z) : 0; };
    total = sum_amounts(s.row, s.count, above, m) +
            (std::uint64_t(s.order.top_k) - kth.before) * s.amount(value_of(kth.key));
  } else {
    total = sum_amounts(s.row, s.count, amount, m);
  }
  if (s.order.top_p < 1.0f) {
    const auto wanted = static_cast<std::uint64_t>(ceil(double{s.order.top_p} * double(total)));
    const std::uint64_t target = wanted > 0 ? wanted - 1 : 0;
    const auto at = find_crossing(s.row, s.count, amount, target, m);
    const std::uint64_t each = s.amount(value_of(at.key));
    total = min(total, at.before + ((target - at.before) / each + 1) * each);
  }
  if (s.order.min_p > 0.0f) {
    const auto least = static_cast<std::uint64_t>(double{s.order.min_p} * 0x1p40);
    const auto likely = [&](float z) {
      const std::uint64_t a = s.amount(z);
      return a >= least ? a : 0;
    };
    total = min(total, sum_amounts(s.row, s.count, likely, m));
  }
  const auto target =
      min(total - 1, static_cast<std::uint64_t>(double{s.order.uniform} * double(total)));
  const auto at = find_crossing(s.row, s.count, amount, target, m);
  const std::uint64_t each = s.amount(value_of(at.key));
  return static_cast<int>(token_with_key(s.row, s.count, at.key, (target - at.before) / each, m));
}

/// Where candidates did not fit: the `wanted` largest entries, sorted, by the first thread block.
__device__ inline int select_candidates(const float* row, int count, int wanted, block_memory& m) {
  wanted = min(wanted, count);
  const auto one = [](float z) { return std::uint64_t{!isnan(z)}; };
  if (sum_amounts(row, count, one, m.select) < std::uint64_t(wanted))
    return 0;
  const auto kth = find_crossing(row, count, one, std::uint64_t(wanted) - 1, m.select);
  if (threadIdx.x == 0)
    m.candidate_count = 0;
  for (int i = static_cast<int>(threadIdx.x); i < candidates_of_block; i += draw_threads)
    m.candidates[i] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += draw_threads)
    if (const float z = __ldcg(row + i); key_of(z) > kth.key)
      m.candidates[atomicAdd(&m.candidate_count, 1)] = candidate(z, static_cast<std::uint32_t>(i));
  for (int i = static_cast<int>(kth.before); i < wanted; ++i) {
    const std::uint32_t token =
        token_with_key(row, count, kth.key, std::uint64_t(i) - kth.before, m.select);
    if (threadIdx.x == 0)
      m.candidates[i] = candidate(value_of(kth.key), token);
    __syncthreads();
  }
  sort_descending(m.candidates, candidates_of_block);
  return wanted;
}

/// The token of a row whose sums and candidates are known; for all threads.
__device__ inline int draw_token(const draw_state& s, const row_extremes& extremes,
                                 block_memory& m) {
  if (!(s.order.temperature > 0 && isfinite(s.largest)))
    return s.largest == -INFINITY ? 0 : static_cast<int>(token_of(extremes.best));
  for (int i = static_cast<int>(threadIdx.x); i < s.candidates; i += draw_threads) {
    const double z = logit_of(m.candidates[i]);
    m.weights[i] = z == s.largest ? 1 : exp((z - double{s.largest}) / double{s.order.temperature});
  }
  __syncthreads();
  if (threadIdx.x == 0)
    m.out.token = draw_of_candidates(s, m);
  __syncthreads();
  const int token = m.out.token;
  __syncthreads();
  return token < 0 ? draw_of_row(s, m.select) : token;
}

__device__ inline float probability(float z, float largest, double sum) {
  const double own = isnan(z) ? 0 : z == largest ? 1 : exp(double{z} - double{largest});
  return static_cast<float>(own / sum);
}

/// Of a token, in the row's own distribution mixed with the other model's.
__device__ inline float mixed_probability(const float* mixes, const draw_order& order, float z,
                                          std::uint32_t token, float largest, double sum) {
  return __fadd_rn(__fmul_rn(1 - order.mix_weight, mixes[order.mix + token]),
                   __fmul_rn(order.mix_weight, probability(z, largest, sum)));
}

/// The largest over the whole cluster.
__device__ inline std::uint64_t cluster_most(const cg::cluster_group& cluster, std::uint64_t x,
                                             block_memory& m) {
  __syncthreads();
  x = block_most(x, m.scratch_u64);
  if (threadIdx.x == 0)
    m.mixed_best = x;
  cluster.sync();
  for (unsigned i = 0; i < cluster.num_blocks(); ++i) {
    const std::uint64_t other = *cluster.map_shared_rank(&m.mixed_best, i);
    x = other > x ? other : x;
  }
  return x;
}

} // namespace tokenrouter::gpu
