#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace tokenrouter::gpu {

/// Which columns of a product each shard of a group makes: as many each, the last ones so that they
/// end with the whole, so that neighbours may overlap.
struct column_shares {
  std::uint32_t columns = 0; ///< of the whole; at least `width`
  std::uint32_t width = 0;   ///< of a shard

  __host__ __device__ std::uint32_t first(std::uint32_t shard) const {
    const std::uint32_t place = shard * width;
    return place + width <= columns ? place : columns - width;
  }
};

/// out[rows][columns] of what shards made: gathered[shards][rows][width].
void join_columns(const float* gathered, const column_shares& shares, std::uint32_t shards,
                  std::uint32_t rows, float* out, cudaStream_t stream);

} // namespace tokenrouter::gpu
