#pragma once

#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include "gpu/device_memory.hpp"
#include "runtime/core/error.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/exec/model_config.hpp"

namespace tokenrouter::gpu {

/// y = weight · x + bias, on the device. Elements are bf16 or float, as the model computes.
struct matrix {
  void* weight = nullptr; ///< [columns][k]
  float* bias = nullptr;  ///< [columns] or null
  std::uint32_t columns = 0;
  std::uint32_t k = 0;
};

struct layer_weights {
  float* input_norm = nullptr; ///< [hidden]
  matrix qkv;                  ///< queries, keys, values
  float* q_norm = nullptr;     ///< [head_dim] or null
  float* k_norm = nullptr;
  matrix attention_out;
  float* post_norm = nullptr; ///< [hidden]
  matrix gate_up;             ///< 8 gates, 8 ups, and so on
  matrix down;
};

/// All weights of a model, or a shard's share of them, in one piece of device memory. A shard has
/// its heads' rows of `qkv` and columns of `attention_out`, its rows of `gate_up` and columns of
/// `down`, and the whole of the rest.
struct model_weights {
  compute_type compute = compute_type::bfloat16;
  matrix embedding; ///< [vocabulary][hidden]
  matrix lm_head;   ///< the same memory as `embedding` if they are tied
  std::vector<layer_weights> layers;
  float* final_norm = nullptr; ///< [hidden]
  device_memory bytes;
};

std::size_t element_bytes(compute_type compute);

/// Bytes that loading would take.
std::uint64_t weight_memory_bytes(const model_config& config, compute_type compute);

/// Reads options.group's share of the model's files onto the device, or, if options.dummy_weights,
/// makes random weights of the config's shape: matrices with standard deviation 0.02, norms of 1,
/// the same on every run, and of shards the parts of the same. `config` is of the whole model,
/// `shard` of the share. Errors: those of find_model_tensors and weight_files, capacity.
result<model_weights> load_weights(const load_options& options, const model_config& config,
                                   const model_config& shard, cudaStream_t stream);

} // namespace tokenrouter::gpu
