#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <cuda_runtime_api.h>

#include "gpu/device_memory.hpp"
#include "gpu/sibling_pool.hpp"
#include "gpu/stream_owner.hpp"
#include "runtime/core/ids.hpp"

namespace tokenrouter::gpu {

/// Moves blocks of a KV pool to and from the host beside the steps of its model: on a stream of its
/// own, through pinned memory of two blocks, so that the device copies one while the host copies
/// the other. What it moves is there when a call returns. Made with the device current; used by one
/// thread at a time, any.
class block_mover {
 public:
  explicit block_mover(std::uint32_t device);
  ~block_mover();
  block_mover(const block_mover&) = delete;
  block_mover& operator=(const block_mover&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// Blocks of the pool, one after the other in `bytes`. Requires block ids of the pool.
  void to_host(const pool_view& pool, std::span<const block_id> blocks, std::span<std::byte> bytes);
  void to_device(const pool_view& pool, std::span<const block_id> blocks,
                 std::span<const std::byte> bytes);

 private:
  std::byte* half(std::size_t i) const { return pinned_.as() + i % 2 * (pinned_.bytes() / 2); }
  void prepare(std::size_t bytes_per_block);

  std::uint32_t device_;
  stream_owner stream_;
  std::array<cudaEvent_t, 2> passed_{}; ///< the device is done with that half
  device_memory pinned_;                ///< made when it is first needed
};

} // namespace tokenrouter::gpu
