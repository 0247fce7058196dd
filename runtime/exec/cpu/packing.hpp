#pragma once

#include <cstdint>
#include <vector>

#include "runtime/exec/cpu/kernels.hpp"
#include "runtime/exec/cpu/thread_pool.hpp"
#include "runtime/exec/safetensors.hpp"

namespace tokenrouter::cpu {

/// What fills one output column of a packed matrix: a row of one of several stacked tensors, or
/// zeros.
struct column_source {
  const tensor_view* weight = nullptr; ///< [rows, k]; null: zeros
  const tensor_view* bias = nullptr;   ///< [rows] or null
  std::int64_t row = 0;
};

/// Columns of tensors stacked one after the other, padded to whole panels.
std::vector<column_source> stacked(const std::vector<const tensor_view*>& weights,
                                   const std::vector<const tensor_view*>& biases);

/// Columns of two tensors of equal shape in turns of one panel, each padded to whole panels.
std::vector<column_source> interleaved(const tensor_view* first, const tensor_view* second,
                                       const tensor_view* first_bias,
                                       const tensor_view* second_bias);

/// Writes the panels (see gemm_call) of `columns`, a multiple of 16 of them with `k` inputs each.
/// bf16 storage rounds to nearest even. `bias`: [columns] or null.
void pack(const std::vector<column_source>& columns, std::uint32_t k, storage kind,
          std::byte* panels, float* bias, thread_pool& pool);

} // namespace tokenrouter::cpu
