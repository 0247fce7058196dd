#pragma once

#include <cstdint>

#include "gpu/model_weights.hpp"
#include "runtime/exec/model_config.hpp"

namespace tokenrouter::gpu {

/// Shape of the KV pool in elements. A block holds layer after layer, first keys, then values:
/// [layers][2][kv_heads][16 places][head_dim]; last the records of windows of heads, filled up to
/// whole rows of head_dim: attention may take the pool as such.
struct kv_shape {
  explicit kv_shape(const model_config& c, compute_type compute = compute_type::bfloat16,
                    std::uint32_t floats_per_record = 0)
      : side(std::uint64_t{c.kv_heads} * 16 * c.head_dim), records(2 * side * c.layers),
        block(records + filled_up(std::uint64_t{floats_per_record} * 16 * sizeof(float) /
                                      element_bytes(compute),
                                  c.head_dim)),
        record_floats(floats_per_record) {}
  std::uint64_t side;          ///< keys or values of one layer
  std::uint64_t records;       ///< where they begin
  std::uint64_t block;         ///< all of a block
  std::uint32_t record_floats; ///< of one position; 0: no head has a window

 private:
  static std::uint64_t filled_up(std::uint64_t elements, std::uint64_t row) {
    return (elements + row - 1) / row * row;
  }
};

} // namespace tokenrouter::gpu
