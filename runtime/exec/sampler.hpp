#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/ids.hpp"
#include "runtime/exec/sampling.hpp"

namespace tokenrouter {

struct sampled_token {
  token_id token = -1;
  float logprob = 0; ///< ln softmax(logits)[token] at temperature 1, no truncation, no bias
};

/// Reused memory of a caller; its contents mean nothing between calls.
struct sampler_scratch {
  std::vector<std::pair<float, token_id>> candidates;
  std::vector<float> largest;
  std::vector<float> biased; ///< logits, where a request has biases
};

/// Draws one token from raw logits (only ids legal for sampling are passed), after params.biases
/// were added to them. Greedy at temperature
/// 0, the smallest id winning a tie; else temperature, then top-k, top-p, min-p in that order, and
/// one uniform draw of (params.seed, stream, position) over the survivors in descending order of
/// probability (ties by smaller id). NaN logits count as −inf.
sampled_token sample_token(std::span<const float> logits, const sampling_params& params,
                           std::uint32_t stream, std::uint32_t position, sampler_scratch& scratch);

} // namespace tokenrouter
