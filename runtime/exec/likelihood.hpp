#pragma once

#include <span>

#include "runtime/exec/step.hpp"

namespace tokenrouter {

/// What a row asks to know of one position beside its token: fills `scored_logprob`, if `scored` is
/// not negative, and `likeliest`. `logits`: those legal for sampling; NaN counts as −inf.
void fill_likelihoods(std::span<const float> logits, token_id scored, step_row_output& out,
                      std::span<token_likelihood> likeliest);

/// Gives every answered position of the rows that ask its place in `likeliest`. Requires that rows
/// and earlier positions are there.
void place_likeliest(const step_input& in, step_output& out);

/// The token that the row's answered position number `answered` is scored on; -1: none.
token_id scored_token(const step_input& in, const step_row& row, std::uint32_t answered);

} // namespace tokenrouter
