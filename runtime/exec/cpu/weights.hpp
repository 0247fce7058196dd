#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/exec/cpu/kernels.hpp"
#include "runtime/exec/cpu/memory.hpp"
#include "runtime/exec/cpu/thread_pool.hpp"
#include "runtime/exec/model_config.hpp"
#include "runtime/exec/safetensors.hpp"

namespace tokenrouter::cpu {

/// A weight matrix in column panels; see gemm_call for the layout.
struct matrix {
  std::byte* panels = nullptr;
  std::uint32_t panel_count = 0;
  std::uint32_t k = 0;   ///< inputs
  float* bias = nullptr; ///< [16 · panel_count] or null
};

struct layer_weights {
  float* input_norm = nullptr; ///< [hidden]
  matrix qkv;                  ///< queries, keys, values
  float* q_norm = nullptr;     ///< [head_dim] or null
  float* k_norm = nullptr;
  matrix attention_out;
  float* post_norm = nullptr; ///< [hidden]
  matrix gate_up;             ///< a panel of gates, a panel of ups, and so on
  matrix down;
};

/// All weights of a model, in one piece of memory.
struct model_weights {
  storage kind = storage::bf16;
  matrix embedding; ///< [hidden] inputs, a column for each token; also read row by row
  matrix lm_head;   ///< the same memory as `embedding` if they are tied
  std::vector<layer_weights> layers;
  float* final_norm = nullptr; ///< [hidden]
  memory bytes;
};

/// Bytes that load_weights would take.
std::uint64_t weight_memory_bytes(const model_config& config, storage kind);

/// Errors: mismatch, when a tensor is missing, has another shape or an unsupported dtype; all are
/// checked from the headers alone.
result<void> check_tensors(const weight_files& files, const model_config& config);

/// Packs the weights, on all threads of the pool. Errors: those of check_tensors, capacity.
result<model_weights> load_weights(const weight_files& files, const model_config& config,
                                   storage kind, thread_pool& pool);

/// The input embedding of one token; `out`: [hidden].
void read_embedding(const model_weights& weights, token_id token, float* out);

} // namespace tokenrouter::cpu
