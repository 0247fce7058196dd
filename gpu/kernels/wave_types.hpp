#pragma once

#include <cstdint>

/// Plain structs that host code fills and kernels read, or the other way round.
namespace tokenrouter::gpu {

/// One piece of the attention of up to 16 / group neighbouring tokens of a request ("unit"): the
/// KV blocks [block_begin, block_end) of its table. A unit in several pieces is merged by the piece
/// that ends last.
struct attention_piece {
  std::int32_t first_token; ///< of the wave
  std::int32_t token_count;
  std::int32_t position;      ///< of the first token
  std::int32_t wave_position; ///< first of its request in this wave: what is before is in the pool
  std::int32_t table;         ///< offset of its block table
  std::int32_t block_begin;
  std::int32_t block_end;
  std::int32_t piece; ///< of this unit
  std::int32_t piece_count;
  std::int32_t partial; ///< first partial result of this unit; unused where piece_count is 1
  std::int32_t unit;
};

inline constexpr std::int32_t pieces_of_unit_max = 128;

/// Neighbouring tokens of one request, long enough to share their reads of keys and values.
struct attention_tile {
  std::int32_t first_token; ///< of the wave
  std::int32_t token_count; ///< at most as many as the kernel takes
  std::int32_t position;    ///< of the first token
  std::int32_t table;       ///< offset of its block table
};
inline constexpr std::int32_t tile_tokens = 64;            ///< of tile_attention
inline constexpr std::int32_t warpgroup_tile_tokens = 128; ///< of warpgroup_attention

/// How the token after one answered position is drawn, and what else is asked of that position.
struct draw_order {
  std::int32_t token;        ///< of the wave: its last hidden state
  float temperature;         ///< 0: greedy
  std::int32_t top_k;        ///< 0: off
  float top_p;               ///< 1: off
  float min_p;               ///< 0: off
  float uniform;             ///< the draw, in [0, 1)
  std::uint32_t signals;     ///< signal_set
  float mix_weight;          ///< above 0: see step_row::mix_weight
  std::int32_t mix;          ///< offset into the mixes, -1: none
  std::int32_t distribution; ///< offset into the distributions, -1: not asked for
  std::int32_t scored;       ///< token whose likelihood is asked for, -1: none
  std::int32_t likeliest;    ///< how many of the likeliest tokens are, at most likeliest_max
  std::int32_t biases;       ///< offset of its draw_biases into the wave's tables
  std::int32_t bias_count;   ///< at most draw_biases_max
  std::int32_t window_start; ///< step_row::window_start_position; -1: this is padding
};

/// Added to a token's logit before the draw. An order's are by token, each once.
struct draw_bias {
  std::int32_t token;
  float bias;
};
inline constexpr int draw_biases_max = 300;

inline constexpr int head_scores_max = 4;
inline constexpr int likeliest_max = 32;

/// A token and ln softmax(raw logits) of it.
struct likely_token {
  std::int32_t token; ///< -1: there are no more
  float logprob;
};

/// What comes back to the host of one answered position; see step_row_output.
struct drawn_row {
  std::int32_t token;
  float logprob;
  float entropy_nats;
  float entropy_normalised;
  float entropy_top20_nats;
  float aleatoric;
  float epistemic;
  float scored_logprob;
  float head_scores[head_scores_max];
};

} // namespace tokenrouter::gpu
