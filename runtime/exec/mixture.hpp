#pragma once

#include <span>

#include "runtime/exec/sampler.hpp"

/// Two models' distributions over the next token, mixed (Co-LLM's `compose`).
namespace tokenrouter {

/// The x that maximises ((1 − weight) · other(x) + weight · softmax(logits)(x)) · e^bias(x), the
/// smallest id winning a tie; its logprob is that of the mixture without biases. Requires equal
/// sizes, not empty, and weight in (0, 1]. NaN logits count as −inf.
sampled_token most_likely_of_mixture(std::span<const float> logits, std::span<const float> other,
                                     float weight, std::span<const logit_bias> biases = {});

/// softmax(logits) at temperature 1 into `out`, of the same size. NaN logits count as −inf.
void probabilities(std::span<const float> logits, std::span<float> out);

} // namespace tokenrouter
