#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/kernels/draw.hpp"

/// Layers of the routing heads, float32, over the rows of a step. Every row has a workspace of its
/// own; offsets are into that. A row's result depends on nothing but the row.
namespace tokenrouter::gpu {

struct head_rows {
  float* workspace; ///< [rows][stride]
  std::uint64_t stride;
  std::uint32_t rows;
};

enum class head_activation : std::uint8_t { none, relu, gelu };

struct dense_call {
  const float* weight; ///< [out][in]
  const float* bias;   ///< [out]
  std::uint32_t in;
  std::uint32_t out;
  std::uint32_t from; ///< offset of the input
  std::uint32_t to;   ///< offset of the output
  bool accumulate;    ///< added to what is there, after the activation
  head_activation activation;
};
void head_dense(const dense_call& call, const head_rows& rows, cudaStream_t stream);

struct scale_call {
  const float* scale; ///< [count]
  const float* shift;
  const float* mean; ///< [count]; null: layer norm over the row's own mean and variance
  std::uint32_t count;
  float eps;
  std::uint32_t from;
  std::uint32_t to;
  bool relu;
};
/// (x − mean) · scale + shift; scale is applied to x / sqrt(variance + eps) in a layer norm.
void head_scale(const scale_call& call, const head_rows& rows, cudaStream_t stream);

struct head_input_call {
  const float* hidden; ///< [rows][hidden_size]
  std::uint32_t hidden_size;
  std::int32_t hidden_at; ///< offsets; below 0: not wanted
  const void* embeddings; ///< T [vocabulary][hidden_size]
  std::int32_t embedding_at;
  const float* top; ///< [rows][kept_logits_max]
  std::uint32_t top_count;
  std::int32_t top_at;
  const drawn_row* drawn; ///< the proposed tokens
};
template <class T>
void head_inputs(const head_input_call& call, const head_rows& rows, cudaStream_t stream);

/// drawn[row].head_scores[index] = sigmoid(workspace[at]), for rows that asked for heads.
void head_output(std::uint32_t at, std::uint32_t index, const draw_order* orders, drawn_row* drawn,
                 const head_rows& rows, cudaStream_t stream);

} // namespace tokenrouter::gpu
