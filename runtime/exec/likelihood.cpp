#include "runtime/exec/likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/core/check.hpp"
#include "runtime/exec/signals.hpp"

namespace tokenrouter {

namespace {

constexpr float minus_inf = -std::numeric_limits<float>::infinity();

float logprob_of(float z, const softmax_sums& sums) {
  const double difference =
      z == sums.largest ? 0.0 : double{std::isnan(z) ? minus_inf : z} - sums.largest;
  return static_cast<float>(difference - std::log(sums.sum));
}

} // namespace

void fill_likelihoods(std::span<const float> logits, token_id scored, step_row_output& out,
                      std::span<token_likelihood> likeliest) {
  const softmax_sums sums = sum_softmax(logits);
  if (scored >= 0) {
    check(static_cast<std::size_t>(scored) < logits.size(), "a scored token is legal");
    out.scored_logprob = logprob_of(logits[static_cast<std::size_t>(scored)], sums);
  }
  // A handful out of many: the list is kept sorted, and most logits fail the first comparison.
  std::size_t count = 0;
  for (std::size_t i = 0; i < logits.size() && !likeliest.empty(); ++i) {
    const float z = std::isnan(logits[i]) ? minus_inf : logits[i];
    if (count == likeliest.size() && !(z > likeliest[count - 1].logprob))
      continue;
    std::size_t at = count < likeliest.size() ? count++ : count - 1;
    for (; at > 0 && z > likeliest[at - 1].logprob; --at)
      likeliest[at] = likeliest[at - 1];
    likeliest[at] = {static_cast<token_id>(i), z};
  }
  for (auto& x : likeliest.first(count))
    x.logprob = logprob_of(x.logprob, sums);
}

void place_likeliest(const step_input& in, step_output& out) {
  std::uint32_t next = 0;
  std::size_t earlier = 0;
  for (std::size_t r = 0; r < in.rows.size(); ++r) {
    const step_row& row = in.rows[r];
    check(row.likeliest_count <= limits::top_logprobs_max, "a row asks for few likeliest tokens");
    check(row.scored_positions <= row.answered_positions &&
              std::size_t{row.scored_offset} + row.scored_positions <= in.scored_tokens.size(),
          "a row's scored tokens are in the step's");
    for (std::uint32_t i = 0; i < row.answered_positions; ++i) {
      auto& one = i + 1 == row.answered_positions ? out.rows[r] : out.earlier[earlier++];
      one.likeliest_offset = next;
      next += row.likeliest_count;
    }
  }
  out.likeliest.assign(next, token_likelihood{});
}

token_id scored_token(const step_input& in, const step_row& row, std::uint32_t answered) {
  return answered < row.scored_positions ? in.scored_tokens[row.scored_offset + answered] : -1;
}

} // namespace tokenrouter
