#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/kernels.hpp"
#include "runtime/exec/model_config.hpp"

namespace tokenrouter::cpu {

static_assert(limits::block_tokens == lanes, "one vector of scores is one block");

/// Where keys and values lie inside a block: layer by layer, first the keys of all key-value heads
/// ([head_dim][16 positions] each), then the values ([16 positions][padded(head_dim)] each); last
/// the records of window_records ([16 positions][record_floats]), if there are any. A block is
/// contiguous, so that copying or shipping it is one copy.
struct kv_layout {
  kv_layout() = default;
  kv_layout(const model_config& config, storage s, std::uint32_t floats_per_record)
      : key_bytes(std::size_t{config.head_dim} * lanes * element_bytes(s)),
        value_bytes(std::size_t{padded(config.head_dim)} * lanes * element_bytes(s)),
        layer_bytes(config.kv_heads * (key_bytes + value_bytes)), kv_heads(config.kv_heads),
        record_floats(floats_per_record), records_offset(config.layers * layer_bytes),
        block_bytes(records_offset + std::size_t{record_floats} * lanes * sizeof(float)) {}

  std::size_t key_offset(std::uint32_t layer, std::uint32_t kv_head) const {
    return layer * layer_bytes + kv_head * key_bytes;
  }
  std::size_t value_offset(std::uint32_t layer, std::uint32_t kv_head) const {
    return layer * layer_bytes + kv_heads * key_bytes + kv_head * value_bytes;
  }

  std::size_t record_offset(std::uint32_t position) const {
    return records_offset + position % lanes * record_floats * sizeof(float);
  }

  std::size_t key_bytes = 0;   ///< of one head in one block
  std::size_t value_bytes = 0; ///< likewise
  std::size_t layer_bytes = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t record_floats = 0; ///< of one position
  std::size_t records_offset = 0;
  std::size_t block_bytes = 0;
};

} // namespace tokenrouter::cpu
