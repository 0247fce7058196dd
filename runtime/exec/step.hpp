#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/ids.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/signal_set.hpp"
#include "runtime/exec/sampling.hpp"

/// One step of one model: plain host data, no torch, CUDA or NCCL type.
namespace tokenrouter {

/// One request's part of a step: `token_count` new tokens at positions
/// [start_position, start_position + token_count), whose keys and values are written to the blocks
/// of its table. Positions below start_position are in those blocks already.
struct step_row {
  request_id request;             ///< for diagnostics only
  std::uint32_t token_offset = 0; ///< into step_input::tokens
  std::uint32_t token_count = 0;  ///< at least 1
  std::uint32_t start_position = 0;
  std::uint32_t block_offset = 0; ///< into step_input::block_tables
  std::uint32_t block_count = 0;  ///< covers start_position + token_count
  /// So many of the row's last positions are answered: a token is drawn for what follows each of
  /// them. 0: a prefill chunk before the last; more than 1: a peer's tokens are judged.
  std::uint32_t answered_positions = 0;
  signal_set signals = 0; ///< of the answered positions
  /// Heads with a window read positions from this one on, and zeros before it. Requires of a row
  /// that such heads score: those of them before the row's first answered position lie before
  /// start_position, were answered, and are in these blocks.
  std::uint32_t window_start_position = 0;
  sampling_params sampling;
  std::uint32_t sample_stream = 0; ///< see philox.hpp; its position is that of the drawn token
  /// Above 0: the last position's token is the x that maximises (1 − mix_weight) · q(x) +
  /// mix_weight · softmax(logits)(x), q in step_input::mixes at mix_offset.
  float mix_weight = 0;
  std::uint32_t mix_offset = 0;
  /// So many of the likeliest tokens are told of each answered position, at most top_logprobs_max.
  std::uint32_t likeliest_count = 0;
  /// The first so many answered positions are scored as well: how likely is the token of
  /// step_input::scored_tokens, from scored_offset on, after each of them?
  std::uint32_t scored_positions = 0;
  std::uint32_t scored_offset = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, step_row& x) {
    return f(x.request, x.token_offset, x.token_count, x.start_position, x.block_offset,
             x.block_count, x.answered_positions, x.signals, x.window_start_position, x.sampling,
             x.sample_stream, x.mix_weight, x.mix_offset, x.likeliest_count, x.scored_positions,
             x.scored_offset);
  }
};

struct block_copy {
  block_id from = 0;
  block_id to = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, block_copy& x) {
    return f(x.from, x.to);
  }
};

/// Requires: rows in [1, batch_rows_max]; no two rows share a block that either writes.
struct step_input {
  std::vector<block_copy> copies; ///< whole blocks, in this order, before anything is computed
  std::vector<token_id> tokens;
  std::vector<block_id> block_tables;
  std::vector<step_row> rows;
  std::vector<token_id> scored_tokens; ///< legal for sampling
  std::vector<float> mixes; ///< probabilities over the vocabulary legal for sampling, per use

  void clear() {
    copies.clear();
    tokens.clear();
    block_tables.clear();
    rows.clear();
    scored_tokens.clear();
    mixes.clear();
  }

  template <class Inspector>
  friend auto inspect(Inspector& f, step_input& x) {
    return f(x.copies, x.tokens, x.block_tables, x.rows, x.scored_tokens, x.mixes);
  }
};

/// What one position gave. Fields of signals that were not asked for are 0.
struct step_row_output {
  token_id token = -1;          ///< drawn from the masked raw logits; -1 if not answered
  float logprob = 0;            ///< ln softmax(raw logits)[token], temperature 1
  float entropy_nats = 0;       ///< 0 … ln V
  float entropy_normalised = 0; ///< entropy_nats / ln V, V = vocabulary legal for sampling
  float entropy_top20_nats = 0; ///< 0 … ln 20
  float aleatoric = 0;
  float epistemic = 0;
  std::array<float, limits::heads_max> head_scores{}; ///< in the order of load
  std::uint32_t distribution_offset = 0; ///< into step_output::distributions, if asked for
  std::uint32_t likeliest_offset = 0;    ///< into step_output::likeliest, if asked for
  float scored_logprob = 0;              ///< of the scored token, as `logprob`; if asked for
};

/// A token and ln softmax(raw logits) of it, temperature 1.
struct token_likelihood {
  token_id token = -1; ///< -1: the vocabulary has no more
  float logprob = 0;
};

struct step_output {
  /// One for each row of the input, in its order: of its last position.
  std::vector<step_row_output> rows;
  /// Of the answered positions before a row's last: rows in order, positions in order.
  std::vector<step_row_output> earlier;
  /// Probabilities at temperature 1, [vocabulary legal for sampling] for each last position that
  /// asked for signal::distribution.
  std::vector<float> distributions;
  std::uint32_t distribution_tokens = 0; ///< entries of each
  /// Likeliest first (the smaller id wins a tie), step_row::likeliest_count for each answered
  /// position of the rows that ask.
  std::vector<token_likelihood> likeliest;
  std::uint32_t step_us = 0; ///< wall time inside the backend
  std::string failure;       ///< why nothing above means anything; empty: all is well
};

} // namespace tokenrouter
