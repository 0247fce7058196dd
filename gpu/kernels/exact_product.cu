#include "gpu/kernels/exact_product.hpp"

#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr int tile_rows = 16, tile_columns = 64, tile_k = 16;
constexpr int threads = 256;
constexpr int outputs = tile_rows * tile_columns / threads; ///< rows of one column, per thread

/// Each thread owns one column and every fourth row of a tile.
template <class T, product_output output>
__global__ void exact_kernel(const T* x, const T* weight, int rows, int columns, int k, void* y) {
  __shared__ float xs[tile_k][tile_rows];
  __shared__ float ws[tile_k][tile_columns + 1];
  wait_for_previous();
  let_next_start();
  const int first_row = static_cast<int>(blockIdx.y) * tile_rows;
  const int first_column = static_cast<int>(blockIdx.x) * tile_columns;
  const int column = static_cast<int>(threadIdx.x) % tile_columns;
  const int group = static_cast<int>(threadIdx.x) / tile_columns;
  float sums[outputs] = {};
  for (int base = 0; base < k; base += tile_k) {
    for (int i = static_cast<int>(threadIdx.x); i < tile_rows * tile_k; i += threads) {
      const int row = first_row + i / tile_k, at = base + i % tile_k;
      xs[i % tile_k][i / tile_k] =
          row < rows && at < k ? to_float(read_activation(x + std::int64_t{row} * k + at)) : 0.0f;
    }
    for (int i = static_cast<int>(threadIdx.x); i < tile_columns * tile_k; i += threads) {
      const int c = first_column + i / tile_k, at = base + i % tile_k;
      ws[i % tile_k][i / tile_k] =
          c < columns && at < k ? to_float(weight[std::int64_t{c} * k + at]) : 0.0f;
    }
    __syncthreads();
    for (int i = 0; i < tile_k; ++i)
      for (int r = 0; r < outputs; ++r)
        sums[r] = fmaf(xs[i][group * outputs + r], ws[i][column], sums[r]);
    __syncthreads();
  }
  if (first_column + column >= columns)
    return;
  for (int r = 0; r < outputs; ++r) {
    const int row = first_row + group * outputs + r;
    if (row >= rows)
      return;
    const std::int64_t place = std::int64_t{row} * columns + first_column + column;
    if constexpr (output == product_output::operand)
      static_cast<T*>(y)[place] = from_float<T>(sums[r]);
    if constexpr (output == product_output::exact)
      static_cast<float*>(y)[place] = sums[r];
    if constexpr (output == product_output::residual) {
      float* to = static_cast<float*>(y) + place;
      *to = __ldcg(to) + sums[r];
    }
  }
}

} // namespace

template <class T>
void exact_product(const T* x, const T* weight, std::uint32_t rows, std::uint32_t columns,
                   std::uint32_t k, void* y, product_output output, cudaStream_t stream) {
  const launch_shape shape{
      dim3((columns + tile_columns - 1) / tile_columns, (rows + tile_rows - 1) / tile_rows),
      dim3(threads)};
  const auto r = static_cast<int>(rows), c = static_cast<int>(columns), depth = static_cast<int>(k);
  if (output == product_output::operand)
    launch(exact_kernel<T, product_output::operand>, shape, stream, x, weight, r, c, depth, y);
  else if (output == product_output::residual)
    launch(exact_kernel<T, product_output::residual>, shape, stream, x, weight, r, c, depth, y);
  else
    launch(exact_kernel<T, product_output::exact>, shape, stream, x, weight, r, c, depth, y);
}

template void exact_product(const float*, const float*, std::uint32_t, std::uint32_t, std::uint32_t,
                            void*, product_output, cudaStream_t);
template void exact_product(const bf16*, const bf16*, std::uint32_t, std::uint32_t, std::uint32_t,
                            void*, product_output, cudaStream_t);

} // namespace tokenrouter::gpu
