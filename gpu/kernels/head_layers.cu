#include "gpu/kernels/head_layers.hpp"

#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr unsigned threads = 256;
constexpr int rows_together = 8;

__device__ float activate(float x, head_activation activation) {
  if (activation == head_activation::relu)
    return x < 0 ? 0.0f : x; // NaN stays NaN
  if (activation == head_activation::gelu)
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  return x;
}

/// One warp for each output, over eight rows at a time.
__global__ void dense_kernel(dense_call c, head_rows r) {
  const unsigned output = blockIdx.x * (threads / 32) + threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  const unsigned first = blockIdx.y * rows_together;
  const int rows = static_cast<int>(min(r.rows - first, static_cast<unsigned>(rows_together)));
  wait_for_previous();
  let_next_start();
  if (output >= c.out)
    return;
  const float* weight = c.weight + std::uint64_t{output} * c.in;
  const float* x = r.workspace + first * r.stride + c.from;
  float sums[rows_together] = {};
  for (unsigned i = lane; i < c.in; i += 32) {
    const float w = weight[i];
#pragma unroll
    for (int row = 0; row < rows_together; ++row)
      if (row < rows)
        sums[row] = fmaf(w, __ldcg(x + row * r.stride + i), sums[row]);
  }
#pragma unroll
  for (int row = 0; row < rows_together; ++row) {
    const float sum = warp_sum(sums[row]);
    if (row >= rows || lane != 0)
      continue;
    float* y = r.workspace + (first + row) * r.stride + c.to + output;
    const float value = activate(sum + c.bias[output], c.activation);
    *y = c.accumulate ? __ldcg(y) + value : value;
  }
}

__global__ void scale_kernel(scale_call c, head_rows r) {
  __shared__ float scratch[32], more[32];
  wait_for_previous();
  let_next_start();
  const float* x = r.workspace + blockIdx.x * r.stride + c.from;
  float* y = r.workspace + blockIdx.x * r.stride + c.to;
  float mean = 0, factor = 1;
  if (!c.mean) {
    float sum = 0;
    for (unsigned i = threadIdx.x; i < c.count; i += threads)
      sum += __ldcg(x + i);
    mean = block_sum(sum, scratch) / static_cast<float>(c.count);
    float squares = 0;
    for (unsigned i = threadIdx.x; i < c.count; i += threads) {
      const float d = __ldcg(x + i) - mean;
      squares += d * d;
    }
    factor = 1.0f / sqrtf(block_sum(squares, more) / static_cast<float>(c.count) + c.eps);
  }
  for (unsigned i = threadIdx.x; i < c.count; i += threads) {
    const float value =
        (__ldcg(x + i) - (c.mean ? c.mean[i] : mean)) * factor * c.scale[i] + c.shift[i];
    y[i] = c.relu && value < 0 ? 0.0f : value;
  }
}

template <class T>
__global__ void input_kernel(head_input_call c, head_rows r) {
  wait_for_previous();
  let_next_start();
  const std::uint64_t row = blockIdx.x;
  float* to = r.workspace + row * r.stride;
  for (unsigned i = threadIdx.x; i < c.hidden_size; i += threads) {
    if (c.hidden_at >= 0)
      to[c.hidden_at + i] = __ldcg(c.hidden + row * c.hidden_size + i);
    if (c.embedding_at >= 0) {
      const auto token = static_cast<std::uint64_t>(__ldcg(&c.drawn[row].token));
      to[c.embedding_at + i] =
          to_float(static_cast<const T*>(c.embeddings)[token * c.hidden_size + i]);
    }
  }
  if (c.top_at >= 0)
    for (unsigned i = threadIdx.x; i < c.top_count; i += threads)
      to[c.top_at + i] = __ldcg(c.top + row * kept_logits_max + i);
}

__global__ void output_kernel(std::uint32_t at, std::uint32_t index, const draw_order* orders,
                              drawn_row* drawn, head_rows r) {
  wait_for_previous();
  let_next_start();
  const unsigned row = blockIdx.x * threads + threadIdx.x;
  if (row >= r.rows)
    return;
  const bool wanted = orders[row].signals & 8u; // signal::heads
  const float logit = __ldcg(r.workspace + row * r.stride + at);
  drawn[row].head_scores[index] = wanted ? 1.0f / (1.0f + expf(-logit)) : 0.0f;
}

} // namespace

void head_dense(const dense_call& call, const head_rows& rows, cudaStream_t stream) {
  const unsigned warps = threads / 32;
  launch(dense_kernel,
         {dim3((call.out + warps - 1) / warps, (rows.rows + rows_together - 1) / rows_together),
          dim3(threads)},
         stream, call, rows);
}

void head_scale(const scale_call& call, const head_rows& rows, cudaStream_t stream) {
  launch(scale_kernel, {dim3(rows.rows), dim3(threads)}, stream, call, rows);
}

template <class T>
void head_inputs(const head_input_call& call, const head_rows& rows, cudaStream_t stream) {
  launch(input_kernel<T>, {dim3(rows.rows), dim3(threads)}, stream, call, rows);
}

void head_output(std::uint32_t at, std::uint32_t index, const draw_order* orders, drawn_row* drawn,
                 const head_rows& rows, cudaStream_t stream) {
  launch(output_kernel, {dim3((rows.rows + threads - 1) / threads), dim3(threads)}, stream, at,
         index, orders, drawn, rows);
}

template void head_inputs<float>(const head_input_call&, const head_rows&, cudaStream_t);
template void head_inputs<__nv_bfloat16>(const head_input_call&, const head_rows&, cudaStream_t);

} // namespace tokenrouter::gpu
