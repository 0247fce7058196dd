#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

/// Kernels that treat each token of a wave on its own. T is the type of weights, KV and operands of
/// matrix products: float or bf16. The residual stream is float32 throughout.
namespace tokenrouter::gpu {

/// residual[t][hidden] = table[ids[t]][hidden].
template <class T>
void embed(const T* table, const std::int32_t* ids, std::uint32_t tokens, std::uint32_t hidden,
           float* residual, cudaStream_t stream);

struct norm_call {
  const float* residual; ///< [..][hidden]
  const float* weight;   ///< [hidden]
  /// Row i of the output is of residual row gather[i].token; null: of row i.
  const struct draw_order* gather;
  std::uint32_t rows;
  std::uint32_t hidden;
  float eps;
  float* exact; ///< [rows][hidden] before rounding; null: not wanted
};

/// out[rows][hidden] = x / sqrt(mean(x²) + eps) · weight.
template <class T>
void norm_rows(const norm_call& call, T* out, cudaStream_t stream);

/// cosines and sines of position · frequency, as pairs: out[positions][pairs][2].
void fill_rope_table(const double* frequencies, std::uint32_t pairs, std::uint32_t positions,
                     float* out, cudaStream_t stream);

struct rotate_call {
  const void* qkv;     ///< T [tokens][(heads + 2 · kv_heads) · head_dim]
  const float* q_norm; ///< [head_dim], or null: no norm of queries and keys
  const float* k_norm;
  const float* rope;             ///< fill_rope_table's
  const std::int32_t* positions; ///< [tokens]
  const std::int32_t* slots;     ///< [tokens]: block · 16 + place; -1: padding, nothing is written
  std::uint32_t tokens;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  float eps;
  void* q;    ///< T [tokens][heads · head_dim]
  void* pool; ///< T; see kv_shape
  std::uint64_t block_elements;
  std::uint64_t key_offset; ///< of this layer, in elements
  std::uint64_t value_offset;
};

/// Norm and rotation of queries and keys; keys and values go to their place in the pool.
template <class T>
void rotate_and_store(const rotate_call& call, cudaStream_t stream);

/// out[t][i] = silu(gate) · up; gates and ups come in groups of 8 in gate_up[t][2 · width].
template <class T>
void swiglu(const T* gate_up, std::uint32_t tokens, std::uint32_t width, T* out,
            cudaStream_t stream);

/// y[t][columns] += bias[columns].
template <class T>
void add_bias(T* y, const float* bias, std::uint32_t tokens, std::uint32_t columns,
              cudaStream_t stream);

/// A part of a matrix: `rows` by `columns` from a place on.
struct matrix_part {
  std::uint64_t first_row;
  std::uint64_t rows;
  std::uint64_t first_column;
  std::uint64_t columns;
  std::uint64_t whole_columns; ///< of the matrix
};

/// All of a matrix, or of a vector as one of a single column.
inline matrix_part whole_matrix(std::uint64_t rows, std::uint64_t columns = 1) {
  return {0, rows, 0, columns, columns};
}

/// Part of a random matrix: out[rows][columns], uniform with standard deviation `deviation`, a pure
/// function of (stream_id, place in the whole matrix).
template <class T>
void fill_random(T* out, const matrix_part& part, std::uint32_t stream_id, float deviation,
                 cudaStream_t stream);
void fill_constant(float* out, std::uint64_t count, float value, cudaStream_t stream);

} // namespace tokenrouter::gpu
