#include "runtime/exec/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/core/philox.hpp"
#include "runtime/exec/hot_kernel.hpp"
#include "runtime/exec/hot_math.hpp"
#include "runtime/exec/signals.hpp"

namespace tokenrouter {

namespace {

using candidate = std::pair<float, token_id>;

bool more_likely(const candidate& a, const candidate& b) {
  return a.first > b.first || (a.first == b.first && a.second < b.second);
}

/// Candidates in descending order of likelihood, sorted only as far as they are read: a draw
/// rarely looks past the first few of a large vocabulary.
class descending_view {
 public:
  explicit descending_view(std::vector<candidate>& candidates) : candidates_(candidates) {}

  const candidate& at(std::size_t index) {
    while (index >= sorted_)
      sort_more();
    return candidates_[index];
  }

 private:
  void sort_more() {
    const std::size_t until = std::min(candidates_.size(), std::max<std::size_t>(64, sorted_ * 4));
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(until);
    if (end != candidates_.end())
      std::nth_element(begin, end, candidates_.end(), more_likely);
    std::sort(begin, end, more_likely);
    sorted_ = until;
  }

  std::vector<candidate>& candidates_;
  std::size_t sorted_ = 0;
};

token_id greedy_token(std::span<const float> logits, float largest) {
  const auto best = std::ranges::find(logits, largest);
  return best == logits.end() ? 0 : static_cast<token_id>(best - logits.begin());
}

/// e^((z − largest) / temperature), with 1 for the largest even if it is +inf.
double weight(float z, float largest, double temperature) {
  return z == largest ? 1.0 : std::exp((double{z} - double{largest}) / temperature);
}

/// Σ weight over the row; the terms in float32, chunks of them added in float64.
TR_HOT_KERNEL double sum_weights(const float* logits, std::size_t count, float largest,
                                 float inverse_temperature) {
  constexpr std::size_t chunk_floats = 256;
  double total = 0;
  for (std::size_t at = 0; at < count; at += chunk_floats) {
    const std::size_t here = count - at < chunk_floats ? count - at : chunk_floats;
    float terms[chunk_floats] = {};
    for (std::size_t i = 0; i < here; ++i)
      terms[i] = exp_nonpositive((logits[at + i] - largest) * inverse_temperature);
    for (std::size_t half = chunk_floats / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i)
        terms[i] += terms[i + half];
    total += double{terms[0]};
  }
  return total;
}

bool truncates(std::span<const float> logits, const sampling_params& params) {
  return params.top_k != 0 && params.top_k < logits.size();
}

/// Takes every logit that can be drawn: of the `top_k` likeliest (and those equal to the last of
/// them), or of all.
void collect_candidates(std::span<const float> logits, const softmax_sums& sums,
                        const sampling_params& params, sampler_scratch& scratch) {
  // Below this difference a weight is under 1e-20 of the largest: no draw of 24 bits reaches it.
  float least = sums.largest - 46.0f * params.temperature;
  if (truncates(logits, params) && sums.nans == 0) {
    top_logits(logits, params.top_k, scratch.largest);
    least = std::max(least, scratch.largest.back());
  }
  scratch.candidates.clear();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= least)
      scratch.candidates.emplace_back(logits[i], static_cast<token_id>(i));
}

token_id draw_token(std::span<const float> logits, const softmax_sums& sums,
                    const sampling_params& params, float uniform, sampler_scratch& scratch) {
  const double temperature = double{params.temperature};
  collect_candidates(logits, sums, params, scratch);
  descending_view sorted(scratch.candidates);
  const auto weight_at = [&](std::size_t i) {
    return weight(sorted.at(i).first, sums.largest, temperature);
  };

  std::size_t kept = scratch.candidates.size();
  double total = 0;
  if (truncates(logits, params)) {
    kept = std::min<std::size_t>(kept, params.top_k);
    for (std::size_t i = 0; i < kept; ++i)
      total += weight_at(i);
  } else {
    total = sum_weights(logits.data(), logits.size(), sums.largest, 1.0f / params.temperature);
  }
  if (params.top_p < 1.0f) {
    const double wanted = double{params.top_p} * total;
    double reached = weight_at(0);
    std::size_t count = 1;
    while (count < kept && reached < wanted)
      reached += weight_at(count++);
    kept = count;
    total = reached;
  }
  if (params.min_p > 0.0f) {
    double reached = 0;
    std::size_t count = 0;
    while (count < kept && (count == 0 || weight_at(count) >= double{params.min_p}))
      reached += weight_at(count++);
    kept = count;
    total = reached;
  }

  const double target = double{uniform} * total;
  double reached = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    reached += weight_at(i);
    if (reached > target)
      return sorted.at(i).second;
  }
  return sorted.at(kept - 1).second; // rounding left the sum a hair under the target
}

token_id choose_token(std::span<const float> logits, const softmax_sums& sums,
                      const sampling_params& params, std::uint32_t stream, std::uint32_t position,
                      sampler_scratch& scratch) {
  if (params.temperature > 0.0f && std::isfinite(sums.largest))
    return draw_token(logits, sums, params, uniform_draw(params.seed, stream, position), scratch);
  return greedy_token(logits, sums.largest);
}

std::span<const float> add_biases(std::span<const float> logits, const sampling_params& params,
                                  sampler_scratch& scratch) {
  scratch.biased.assign(logits.begin(), logits.end());
  for (const auto& x : params.biases)
    if (static_cast<std::size_t>(x.token) < logits.size())
      scratch.biased[static_cast<std::size_t>(x.token)] += x.bias;
  return scratch.biased;
}

} // namespace

sampled_token sample_token(std::span<const float> logits, const sampling_params& params,
                           std::uint32_t stream, std::uint32_t position, sampler_scratch& scratch) {
  const softmax_sums sums = sum_softmax(logits);
  token_id token = -1;
  if (params.biases.empty()) {
    token = choose_token(logits, sums, params, stream, position, scratch);
  } else {
    const auto biased = add_biases(logits, params, scratch);
    token = choose_token(biased, sum_softmax(biased), params, stream, position, scratch);
  }
  const float z = logits[static_cast<std::size_t>(token)];
  const double difference = z == sums.largest || std::isnan(z) ? 0.0 : double{z} - sums.largest;
  return {token, static_cast<float>(difference - std::log(sums.sum))};
}

} // namespace tokenrouter
