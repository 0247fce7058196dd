#include "gpu/kernels/draw.hpp"

#include "gpu/kernels/biased_draw.cuh"
#include "gpu/kernels/row_draw.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr int top_entropy_count = 20, evidence_count = 10;

enum signal_bit : std::uint32_t { // as core/signal_set.hpp
  wants_entropy = 1,
  wants_top_entropy = 2,
  wants_evidence = 4,
  wants_heads = 8,
  wants_distribution = 16,
};

__device__ inline double warp_total(double x) {
  for (int step = 16; step > 0; step /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

/// ψ(x) for x > 0: recurrence up to 10, then the asymptotic series (error below 1e-14).
__device__ inline double digamma(double x) {
  double result = 0;
  for (; x < 10; x += 1)
    result -= 1 / x;
  const double y = 1 / (x * x);
  return result + log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132)))));
}

/// Entropy and evidence of the largest entries; one warp. `known`: how many there are.
__device__ inline void fill_top_signals(const float* top, int known, std::uint32_t signals,
                                        drawn_row& out) {
  const int lane = static_cast<int>(threadIdx.x);
  const float z = lane < known ? top[lane] : -INFINITY;
  if (signals & wants_top_entropy) {
    const int count = min(known, top_entropy_count);
    const bool mine = lane < count;
    const double y = mine ? double{z} - double{top[0]} : 0;
    const double e = mine ? exp(y) : 0;
    const double sum = warp_total(e), weighted = warp_total(e > 0 ? e * y : 0);
    const double bound = log(double(count));
    const double nats = log(sum) - weighted / sum;
    if (lane == 0)
      out.entropy_top20_nats =
          isnan(top[0]) ? NAN : static_cast<float>(fmin(fmax(nats, 0.0), bound));
  }
  if (signals & wants_evidence) {
    const int count = min(known, evidence_count);
    const double value = lane >= count ? 0 : isnan(z) ? NAN : fmax(double{z}, 1e-6);
    const double total = warp_total(value);
    const double part =
        lane < count ? value / total * (digamma(value + 1) - digamma(total + 1)) : 0;
    const double aleatoric = -warp_total(part);
    if (lane == 0) {
      const bool fine = isfinite(total);
      out.aleatoric = fine ? static_cast<float>(aleatoric) : NAN;
      out.epistemic = fine ? static_cast<float>(count / (total + count)) : NAN;
    }
  }
}

/// The token of the mixture and its probability's logarithm, over the whole cluster.
__device__ void draw_mixture(const cg::cluster_group& cluster, const row_slice& slice,
                             const draw_call& c, const draw_order& order, float largest, double sum,
                             block_memory& m) {
  std::uint64_t best = 0;
  slice.each([&](float z, std::uint32_t token) {
    const float p = mixed_probability(c.mixes, order, z, token, largest, sum);
    const std::uint64_t here = candidate(p, token);
    best = here > best ? here : best;
  });
  best = cluster_most(cluster, best, m);
  if (threadIdx.x == 0) {
    m.out.token = static_cast<int>(token_of(best));
    m.out.logprob = logf(logit_of(best));
  }
}

/// What the first thread block adds once the row's sums and candidates are known. `token`: of a
/// row that is not mixed; −1: not drawn yet.
__device__ void finish_row(const draw_call& c, const draw_state& s, std::uint64_t row,
                           const row_extremes& extremes, const row_sums& sums, int kept, bool mixed,
                           int token, block_memory& m) {
  float* top = c.top + row * kept_logits_max;
  const int nans = static_cast<int>(extremes.nans);
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(kept_logits_max);
       i += draw_threads)
    top[i] = i < nans                  ? NAN
             : i - nans < s.candidates ? logit_of(m.candidates[i - nans])
                                       : -INFINITY;
  __syncthreads();
  if (!mixed) {
    if (token < 0)
      token = draw_token(s, extremes, m);
    if (threadIdx.x == 0) {
      const float z = __ldcg(s.row + token);
      const double difference = z == s.largest || isnan(z) ? 0 : double{z} - double{s.largest};
      m.out.token = token;
      m.out.logprob = static_cast<float>(difference - log(sums.sum));
    }
  }
  const auto logprob_of = [&](float z) {
    const double difference =
        z == s.largest ? 0 : double{isnan(z) ? -INFINITY : z} - double{s.largest};
    return static_cast<float>(difference - log(sums.sum));
  };
  if (threadIdx.x == 0 && s.order.scored >= 0)
    m.out.scored_logprob = logprob_of(__ldcg(s.row + s.order.scored));
  for (int i = static_cast<int>(threadIdx.x); i < s.order.likeliest; i += draw_threads)
    c.likeliest[row * likeliest_max + i] =
        i < s.candidates ? likely_token{static_cast<int>(token_of(m.candidates[i])),
                                        logprob_of(logit_of(m.candidates[i]))}
                         : likely_token{-1, 0};
  if (threadIdx.x == 0 && s.order.signals & wants_entropy) {
    const double bound = log(double(s.count));
    const double nats = fmin(fmax(log(sums.sum) - sums.weighted / sums.sum, 0.0), bound);
    m.out.entropy_nats = nans > 0 ? NAN : static_cast<float>(nats);
    m.out.entropy_normalised = nans > 0 ? NAN : bound > 0 ? static_cast<float>(nats / bound) : 0.0f;
  }
  if (threadIdx.x < 32)
    fill_top_signals(top, min(kept, s.count), s.order.signals, m.out);
  __syncthreads();
  if (threadIdx.x < sizeof(drawn_row) / sizeof(int) - head_scores_max)
    reinterpret_cast<int*>(&c.out[row])[threadIdx.x] = reinterpret_cast<int*>(&m.out)[threadIdx.x];
}

/// `has_biases`: some row has. Other steps keep the registers that this takes.
template <bool has_biases>
__global__ void __launch_bounds__(draw_threads) draw_kernel(draw_call c) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto& m = *reinterpret_cast<block_memory*>(shared);
  const cg::cluster_group cluster = cg::this_cluster();
  const std::uint64_t row = blockIdx.x / cluster.num_blocks();
  wait_for_previous();
  let_next_start();
  const draw_order order = c.orders[row];
  if (threadIdx.x < sizeof(drawn_row) / sizeof(int))
    reinterpret_cast<int*>(&m.out)[threadIdx.x] = 0;
  const int count = static_cast<int>(c.count);
  float* logits = c.logits + row * c.stride;
  const bool aligned = c.stride % 4 == 0 && c.count % 4 == 0;
  const bool mixed = order.mix >= 0 && order.mix_weight > 0;
  const bool biased = has_biases && order.bias_count > 0;
  const biased_row biased_logits{logits, count, aligned, order,
                                 reinterpret_cast<const draw_bias*>(c.tables + order.biases)};
  int token = -1;
  if (biased && !mixed)
    token = draw_biased(cluster, biased_logits, m);
  row_slice slice;
  slice.open(logits, count, aligned, cluster.block_rank(), cluster.num_blocks());
  int kept = c.top_of_all || order.signals & wants_heads ? static_cast<int>(c.top_wanted) : 0;
  if (order.signals & wants_top_entropy)
    kept = max(kept, top_entropy_count);
  if (order.signals & wants_evidence)
    kept = max(kept, evidence_count);
  kept = max(kept, order.likeliest);
  if (order.temperature > 0)
    kept = max(kept, drawn_candidates);
  const row_extremes extremes = find_extremes(cluster, slice, kept, m);
  const row_sums sums = add_up(cluster, slice, extremes, order.temperature, kept > 0, m);
  const float largest = largest_of(extremes);
  if (order.distribution >= 0)
    slice.each([&](float z, std::uint32_t token) {
      c.distributions[order.distribution + token] = probability(z, largest, sums.sum);
    });
  int candidates = 0;
  if (kept > 0 && cluster.block_rank() == 0)
    candidates = gather_candidates(cluster, kept, m);
  if (mixed && biased)
    draw_biased_mixture(cluster, slice, biased_logits, c.mixes, largest, sums.sum, m);
  else if (mixed)
    draw_mixture(cluster, slice, c, order, largest, sums.sum, m);
  cluster.sync(); // until here other blocks read this one's memory
  if (cluster.block_rank() != 0)
    return;
  if (candidates < 0)
    candidates = select_candidates(logits, count, kept, m);
  finish_row(c, {logits, count, order, candidates, largest, sums.total}, row, extremes, sums, kept,
             mixed, token, m);
}

} // namespace

void draw_rows(const draw_call& call, cudaStream_t stream) {
  // Many rows keep all processors busy with fewer blocks each.
  const unsigned blocks = !has_sm_90(target_here()) ? 1
                          : call.rows <= 16         ? cluster_blocks_max
                          : call.rows <= 32         ? 4
                                                    : 2;
  launch(call.has_biases ? draw_kernel<true> : draw_kernel<false>,
         {dim3(call.rows * blocks), dim3(draw_threads), sizeof(block_memory), blocks}, stream,
         call);
}

void prepare_draws() {
  for (const auto kernel : {draw_kernel<false>, draw_kernel<true>})
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(sizeof(block_memory))));
}

} // namespace tokenrouter::gpu
