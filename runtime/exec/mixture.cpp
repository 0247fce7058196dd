#include "runtime/exec/mixture.hpp"

#include <cmath>

#include "runtime/core/check.hpp"
#include "runtime/exec/signals.hpp"

namespace tokenrouter {

namespace {

float probability(float logit, const softmax_sums& sums) {
  if (std::isnan(logit))
    return 0;
  if (logit == sums.largest)
    return static_cast<float>(1.0 / sums.sum);
  return static_cast<float>(std::exp(double{logit} - double{sums.largest}) / sums.sum);
}

} // namespace

sampled_token most_likely_of_mixture(std::span<const float> logits, std::span<const float> other,
                                     float weight, std::span<const logit_bias> biases) {
  check(!logits.empty() && logits.size() == other.size(), "a mixture is over one vocabulary");
  check(weight > 0 && weight <= 1, "a mixture's weight is a share");
  const auto sums = sum_softmax(logits);
  sampled_token best{0, 0};
  double largest = -1;
  auto bias = biases.begin();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float p = (1 - weight) * other[i] + weight * probability(logits[i], sums);
    double biased = double{p};
    if (bias != biases.end() && static_cast<std::size_t>(bias->token) == i)
      biased *= std::exp(double{(bias++)->bias});
    if (biased > largest) {
      largest = biased;
      best = {static_cast<token_id>(i), p};
    }
  }
  best.logprob = std::log(best.logprob);
  return best;
}

void probabilities(std::span<const float> logits, std::span<float> out) {
  check(logits.size() == out.size(), "a distribution is as wide as its logits");
  const auto sums = sum_softmax(logits);
  for (std::size_t i = 0; i < logits.size(); ++i)
    out[i] = probability(logits[i], sums);
}

} // namespace tokenrouter
