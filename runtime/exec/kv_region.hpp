#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/exec/backend.hpp"

namespace tokenrouter {

/// A KV pool in host memory: block after block.
struct kv_region {
  std::shared_ptr<void> owner; ///< keeps the memory
  std::byte* data = nullptr;
  std::uint64_t bytes_per_block = 0;
  std::uint32_t blocks = 0;
};

/// Makes a pool known to the other backends of this process, for as long as its owner lives.
/// Returns its address: process, start of the process, and number; never a pointer. Any thread.
std::vector<std::byte> publish_kv(const kv_region& pool);

/// Reads the pool that `publish_kv` gave that address, into `own`; keeps both. Errors: unavailable
/// (of another process, or gone), mismatch (blocks of another size). Any thread.
result<std::unique_ptr<kv_source>> reach_region(std::span<const std::byte> address, kv_region own);

/// What kv_source::read says of a block that the sibling named and does not have: malformed.
tl::unexpected<error> no_such_block(block_id block, std::uint64_t blocks);

} // namespace tokenrouter
