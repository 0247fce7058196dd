#pragma once

#include <array>
#include <cstdint>
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
  bool wants_token = false;       ///< false: a prefill chunk that is not the last
  signal_set signals = 0;         ///< only with wants_token
  sampling_params sampling;
  std::uint32_t sample_stream = 0; ///< see philox.hpp; position is start_position + token_count
};

/// Requires: rows in [1, batch_rows_max]; no two rows share a block that either writes.
struct step_input {
  std::vector<token_id> tokens;
  std::vector<block_id> block_tables;
  std::vector<step_row> rows;
};

/// What one row gave. Fields of signals that were not asked for are 0.
struct step_row_output {
  token_id token = -1;          ///< drawn from the masked raw logits; -1 if not wants_token
  float logprob = 0;            ///< ln softmax(raw logits)[token], temperature 1
  float entropy_nats = 0;       ///< 0 … ln V
  float entropy_normalised = 0; ///< entropy_nats / ln V, V = vocabulary legal for sampling
  float entropy_top20_nats = 0; ///< 0 … ln 20
  float aleatoric = 0;
  float epistemic = 0;
  std::array<float, limits::heads_max> head_scores{}; ///< in the order of load
};

struct step_output {
  std::vector<step_row_output> rows; ///< one for each row of the input, in its order
  std::uint32_t step_us = 0;         ///< wall time inside the backend
};

} // namespace tokenrouter
