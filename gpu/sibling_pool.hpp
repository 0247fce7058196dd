#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <cuda_runtime_api.h>

#include "gpu/device_memory.hpp"
#include "runtime/core/check.hpp"
#include "runtime/exec/backend.hpp"

namespace tokenrouter::gpu {

/// A KV pool of this process on a device: block after block.
struct pool_view {
  const device_memory* memory = nullptr;
  std::uint32_t device = 0;
  std::uint64_t bytes_per_block = 0;
  std::uint32_t blocks = 0;

  /// Requires a block of the pool.
  std::byte* at(block_id block) const {
    check(block < blocks, "block id below the allocated count");
    return memory->as() + block * bytes_per_block;
  }
};

/// backend::kv_address of a pool; empty if others can't map it.
std::vector<std::byte> address_of(const pool_view& pool);

/// backend::reach_kv: copies run on `stream`, one for each block (contexts are scattered), and are
/// complete when read() returns. Any thread; the device becomes the current one. Errors:
/// unavailable, mismatch (another block size).
result<std::unique_ptr<kv_source>> reach_pool_at(std::span<const std::byte> address,
                                                 const pool_view& own, cudaStream_t stream);

} // namespace tokenrouter::gpu
