#pragma once

#include "runtime/exec/cpu/attention_kernel.hpp"
#include "runtime/exec/cpu/gemm_kernel.hpp"
#include "runtime/exec/cpu/kernels.hpp"
#include "runtime/exec/cpu/row_kernels.hpp"

namespace tokenrouter::cpu {

/// All kernels over the vector type V.
template <class V>
constexpr kernel_table make_table(const char* name) {
  return {
      .name = name,
      .gemm = {gemm<V, storage::bf16>, gemm<V, storage::f32>},
      .norm = norm<V>,
      .norm_operand = {norm_operand<V, storage::bf16>, norm_operand<V, storage::f32>},
      .rotate = {rotate<V, storage::bf16>, rotate<V, storage::f32>},
      .attend = {attend<V, storage::bf16>, attend<V, storage::f32>},
      .swiglu = {swiglu<V, storage::bf16>, swiglu<V, storage::f32>},
      .to_operand = {to_operand<V, storage::bf16>, to_operand<V, storage::f32>},
  };
}

/// The tables of the sets this build has. Reading one is safe on any processor; calling its
/// kernels is not.
extern const kernel_table scalar_kernels;
extern const kernel_table avx2_kernels;
extern const kernel_table avx512_kernels;
extern const kernel_table avx512_bf16_kernels;

} // namespace tokenrouter::cpu
