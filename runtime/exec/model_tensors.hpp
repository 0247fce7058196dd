#pragma once

#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/exec/model_config.hpp"
#include "runtime/exec/safetensors.hpp"

/// The tensors of a model by what they are for, whatever the device.
namespace tokenrouter {

/// y = weight · x + bias, as in the files.
struct linear_tensors {
  const tensor_view* weight = nullptr;
  const tensor_view* bias = nullptr; ///< null if the model has none
};

struct layer_tensors {
  const tensor_view* input_norm = nullptr;
  linear_tensors q, k, v, o;
  const tensor_view* q_norm = nullptr; ///< null if queries and keys are not normed
  const tensor_view* k_norm = nullptr;
  const tensor_view* post_norm = nullptr;
  linear_tensors gate, up, down;
};

struct model_tensors {
  const tensor_view* embedding = nullptr;
  const tensor_view* lm_head = nullptr; ///< null if tied
  const tensor_view* final_norm = nullptr;
  std::vector<layer_tensors> layers;
};

/// Looks all of them up, from the headers alone; valid while `files` lives. Errors: mismatch (a
/// tensor is missing, or has another shape or dtype than BF16, F16 or F32).
result<model_tensors> find_model_tensors(const weight_files& files, const model_config& config);

} // namespace tokenrouter
