#include "runtime/exec/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/core/check.hpp"
#include "runtime/core/philox.hpp"
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

/// Takes every logit that can be drawn at all and returns the sum of their weights, added in the
/// order of ids.
double collect_candidates(std::span<const float> logits, float largest, double temperature,
                          std::vector<candidate>& out) {
  // Below this difference a weight is under 1e-20 of the largest: no draw of 24 bits reaches it.
  const float least = largest - static_cast<float>(46.0 * temperature);
  out.clear();
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] >= least))
      continue;
    out.emplace_back(logits[i], static_cast<token_id>(i));
    total += weight(logits[i], largest, temperature);
  }
  return total;
}

token_id draw_token(std::span<const float> logits, float largest, const sampling_params& params,
                    float uniform, std::vector<candidate>& candidates) {
  const double temperature = double{params.temperature};
  double total = collect_candidates(logits, largest, temperature, candidates);
  descending_view sorted(candidates);
  const auto weight_at = [&](std::size_t i) {
    return weight(sorted.at(i).first, largest, temperature);
  };

  std::size_t kept = candidates.size();
  if (params.top_k != 0 && params.top_k < kept) {
    kept = params.top_k;
    total = 0;
    for (std::size_t i = 0; i < kept; ++i)
      total += weight_at(i);
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

} // namespace

sampled_token sample_token(std::span<const float> logits, const sampling_params& params,
                           std::uint32_t stream, std::uint32_t position, sampler_scratch& scratch) {
  const softmax_sums sums = sum_softmax(logits);
  const bool draws = params.temperature > 0.0f && std::isfinite(sums.largest);
  const token_id token =
      draws ? draw_token(logits, sums.largest, params, uniform_draw(params.seed, stream, position),
                         scratch.candidates)
            : greedy_token(logits, sums.largest);
  const float z = logits[static_cast<std::size_t>(token)];
  const double difference = z == sums.largest || std::isnan(z) ? 0.0 : double{z} - sums.largest;
  return {token, static_cast<float>(difference - std::log(sums.sum))};
}

} // namespace tokenrouter
