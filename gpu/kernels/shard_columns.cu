#include "gpu/kernels/shard_columns.hpp"

#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr unsigned threads = 256;

__global__ void join_kernel(const float* gathered, column_shares shares, std::uint32_t rows,
                            float* out) {
  wait_for_previous();
  let_next_start();
  const std::uint32_t row = blockIdx.y, shard = blockIdx.z;
  const std::uint32_t column = blockIdx.x * threads + threadIdx.x;
  if (column >= shares.width)
    return;
  const std::uint64_t from = (std::uint64_t{shard} * rows + row) * shares.width + column;
  out[std::uint64_t{row} * shares.columns + shares.first(shard) + column] = __ldcg(gathered + from);
}

} // namespace

void join_columns(const float* gathered, const column_shares& shares, std::uint32_t shards,
                  std::uint32_t rows, float* out, cudaStream_t stream) {
  const dim3 grid((shares.width + threads - 1) / threads, rows, shards);
  launch(join_kernel, {grid, threads}, stream, gathered, shares, rows, out);
}

} // namespace tokenrouter::gpu
