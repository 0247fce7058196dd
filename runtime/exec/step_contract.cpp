#include "runtime/exec/step_contract.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/likelihood.hpp"

namespace tokenrouter {
namespace {

void check_row(const step_input& in, const step_row& row, const step_limits& limits) {
  const std::uint64_t positions = std::uint64_t{row.start_position} + row.token_count;
  check(row.token_count >= 1, "step: a row has at least one token");
  check(std::uint64_t{row.token_offset} + row.token_count <= in.tokens.size(), "step: tokens");
  check(std::uint64_t{row.block_offset} + row.block_count <= in.block_tables.size(),
        "step: block table");
  check(std::uint64_t{row.block_count} * limits::block_tokens >= positions,
        "step: blocks cover the row");
  check(positions <= limits.context_tokens_max, "step: row fits the model's context");
  for (std::uint32_t i = 0; i < row.block_count; ++i)
    check(in.block_tables[row.block_offset + i] < limits.blocks, "step: block ids are allocated");
  check(row.answered_positions <= row.token_count, "step: a row answers positions that it runs");
  const auto first_answered =
      static_cast<std::uint32_t>(positions) - std::min(row.answered_positions, row.token_count);
  check(!limits.reads_window || !has(row.signals, signal::heads) ||
            row.window_start_position >= first_answered || first_answered == row.start_position,
        "step: positions of a window are answered");
  check(row.mix_weight <= 0 || row.mix_offset + limits.vocab_legal_tokens <= in.mixes.size(),
        "step: a row's mix");
  for (std::uint32_t i = 0; i < row.token_count; ++i) {
    const token_id token = in.tokens[row.token_offset + i];
    check(token >= 0 && static_cast<std::uint32_t>(token) < limits.vocab_tokens,
          "step: token ids are in the vocabulary");
  }
}

} // namespace

void check_step(const step_input& in, const step_limits& limits) {
  check(!in.rows.empty() && in.rows.size() <= limits::batch_rows_max, "step: number of rows");
  for (const auto& row : in.rows)
    check_row(in, row, limits);
}

void lay_out_results(const step_input& in, std::uint32_t vocab_legal_tokens, step_output& out) {
  std::size_t earlier = 0;
  std::uint32_t distributions = 0;
  out.rows.assign(in.rows.size(), step_row_output{});
  for (std::size_t row = 0; row < in.rows.size(); ++row) {
    const std::uint32_t answered = in.rows[row].answered_positions;
    earlier += answered > 1 ? answered - 1 : 0;
    if (answered > 0 && has(in.rows[row].signals, signal::distribution))
      out.rows[row].distribution_offset = distributions++ * vocab_legal_tokens;
  }
  out.earlier.assign(earlier, step_row_output{});
  out.distributions.resize(std::size_t{distributions} * vocab_legal_tokens);
  out.distribution_tokens = vocab_legal_tokens;
  place_likeliest(in, out);
}

} // namespace tokenrouter
