#pragma once

#include "gpu/kernels/row_draw.cuh"

/// Draws of rows with biases.
namespace tokenrouter::gpu {

static_assert(draw_biases_max <= draw_threads, "a thread adds one");

/// A row as its thread blocks share it.
struct biased_row {
  float* logits;
  int count;
  bool aligned; ///< see row_slice::open
  draw_order order;
  const draw_bias* biases;
};

/// The token that is drawn once the biases are added, for the first thread block; −1 for others.
/// The whole cluster takes part. The logits are changed meanwhile: draws read all of a row.
__device__ inline int draw_biased(const cg::cluster_group& cluster, const biased_row& r,
                                  block_memory& m) {
  const bool is_first = cluster.block_rank() == 0;
  const int own = static_cast<int>(threadIdx.x);
  float* changed = nullptr;
  float before = 0;
  if (is_first && own < r.order.bias_count) {
    const int token = __ldcg(&r.biases[own].token);
    if (token >= 0 && token < r.count) {
      changed = r.logits + token;
      before = __ldcg(changed);
      __stcg(changed, __fadd_rn(before, __ldcg(&r.biases[own].bias)));
    }
  }
  cluster.sync();
  row_slice slice;
  slice.open(r.logits, r.count, r.aligned, cluster.block_rank(), cluster.num_blocks());
  const int kept = r.order.temperature > 0 ? drawn_candidates : 0;
  const row_extremes extremes = find_extremes(cluster, slice, kept, m);
  row_sums sums{0, 0, 0};
  int candidates = 0;
  if (kept > 0) {
    sums = add_up(cluster, slice, extremes, r.order.temperature, true, m);
    if (is_first)
      candidates = gather_candidates(cluster, kept, m);
  }
  cluster.sync(); // until here other blocks read this one's memory
  int token = -1;
  if (is_first) {
    if (candidates < 0)
      candidates = select_candidates(r.logits, r.count, kept, m);
    token = draw_token({r.logits, r.count, r.order, candidates, largest_of(extremes), sums.total},
                       extremes, m);
    __syncthreads(); // no thread reads the changed row any more
    if (changed)
      __stcg(changed, before);
  }
  cluster.sync();
  return token;
}

/// e^bias of a token; 1 for one without.
__device__ inline double factor_of(const draw_bias* biases, int count, std::uint32_t token) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (static_cast<std::uint32_t>(__ldcg(&biases[middle].token)) < token)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && static_cast<std::uint32_t>(__ldcg(&biases[low].token)) == token
             ? exp(double{__ldcg(&biases[low].bias)})
             : 1.0;
}

/// As draw_mixture, but p(x) · e^bias(x) is the largest; compared in float64, as on the host.
__device__ inline void draw_biased_mixture(const cg::cluster_group& cluster, const row_slice& slice,
                                           const biased_row& r, const float* mixes, float largest,
                                           double sum, block_memory& m) {
  const auto share = [&](float z, std::uint32_t token) {
    return mixed_probability(mixes, r.order, z, token, largest, sum);
  };
  const auto key = [&](float z, std::uint32_t token) {
    const double p = double{share(z, token)} * factor_of(r.biases, r.order.bias_count, token);
    return p > 0 ? static_cast<std::uint64_t>(__double_as_longlong(p)) : std::uint64_t{0};
  };
  std::uint64_t best = 0;
  slice.each([&](float z, std::uint32_t token) { best = max(best, key(z, token)); });
  best = cluster_most(cluster, best, m);
  cluster.sync();          // all have read what the next call writes
  std::uint64_t first = 0; // of the tokens that reach the best, the smallest is the largest here
  slice.each([&](float z, std::uint32_t token) {
    if (key(z, token) == best)
      first = max(first, std::uint64_t{0xffffffffu - token});
  });
  first = cluster_most(cluster, first, m);
  if (threadIdx.x == 0) {
    m.out.token = static_cast<int>(token_of(first));
    m.out.logprob = logf(share(__ldcg(r.logits + token_of(first)), token_of(first)));
  }
}

} // namespace tokenrouter::gpu
