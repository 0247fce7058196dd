#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "gpu/kernels/wave_types.hpp"
#include "gpu/persistent_shape.hpp"

/// All layers of a small bf16 model over a wave of few tokens, in one kernel. Its thread blocks,
/// one for each processor, own columns of every product and hand results to each other through
/// device memory (see persistent_exchange.cuh); what they need of weights, keys and values is on
/// its way to shared memory long before it is needed.
namespace tokenrouter::gpu {

/// Weights of a layer as in layer_weights; biases and norms of queries and keys may be null.
struct persistent_layer {
  const __nv_bfloat16* qkv;
  const __nv_bfloat16* attention_out;
  const __nv_bfloat16* gate_up;
  const __nv_bfloat16* down;
  const float* qkv_bias;
  const float* attention_out_bias;
  const float* gate_up_bias;
  const float* down_bias;
  const float* input_norm;
  const float* post_norm;
  const float* q_norm;
  const float* k_norm;
};

/// State that outlives a launch; all 0 at first.
struct persistent_state {
  unsigned launches;
  unsigned done;    ///< thread blocks that have ended
  unsigned rows[2]; ///< of each set of words: how many hold something
};

/// Where thread blocks meet; see persistent_exchange.cuh for what they must hold at first.
struct persistent_exchange {
  persistent_state* state;
  unsigned* words;         ///< [2 sets][layers][persistent_rows_max][row_words]
  std::uint32_t row_words; ///< words_of_row
  float* middle;           ///< [persistent_rows_max][hidden]: residual after attention
  float* residual;         ///< likewise, after the layer
  float* sums;             ///< as piece_memory
  float* bounds;           ///< as piece_memory
};

struct persistent_call {
  persistent_shape shape;
  float eps;
  float scale;                    ///< of scores: 1 / sqrt(head_dim)
  const __nv_bfloat16* embedding; ///< [vocabulary][hidden]
  const float* rope;              ///< fill_rope_table's
  const std::int32_t* ids;        ///< [tokens], as all of a wave
  const std::int32_t* positions;
  const std::int32_t* slots; ///< -1: padding, from there on
  std::uint32_t tokens;
  const attention_piece* pieces; ///< of all tokens
  const std::int32_t* piece_count;
  const std::int32_t* tables;
  __nv_bfloat16* pool;
  std::uint64_t block_elements;
  std::uint64_t side_elements; ///< keys or values of one layer of a block
  persistent_exchange exchange;
  float* residual;      ///< out: [tokens][hidden]
  std::uint32_t stages; ///< of the ring; set by persistent_layers
  persistent_layer layers[persistent_layers_max];
};

/// Requires persistent_fits, tokens ≤ persistent_rows_max, persistent_blocks(...) > 0. Launched
/// cooperatively with so many thread blocks.
void persistent_layers(const persistent_call& call, std::uint32_t blocks, cudaStream_t stream);

/// How many thread blocks run at once on the current device: one for each processor, or 0 where
/// they can't wait for each other, don't fit, or the code is portable. Lets kernels take the memory
/// that they need.
std::uint32_t persistent_blocks(const persistent_shape& shape);

} // namespace tokenrouter::gpu
