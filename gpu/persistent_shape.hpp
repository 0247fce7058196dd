#pragma once

#include <cstdint>

/// Which models all layers of a step can be one kernel for; pure host code.
namespace tokenrouter::gpu {

struct persistent_shape {
  std::uint32_t layers;
  std::uint32_t hidden;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  std::uint32_t intermediate;
};

inline constexpr std::uint32_t persistent_rows_max = 16;
inline constexpr std::uint32_t persistent_layers_max = 64;
inline constexpr std::uint32_t persistent_hidden_max = 1024;     ///< a warp holds its part of a row
inline constexpr std::uint32_t persistent_hidden_per_block = 32; ///< columns, at most
inline constexpr std::uint32_t persistent_items_max = 32; ///< pieces · kv heads of a thread block

/// Whether a bf16 model fits a device of so many processors, each of which runs a thread block.
/// Requires: at least 2 layers; head_dim 32, 64 or 128; hidden, intermediate and heads · head_dim
/// multiples of 64; the limits above.
bool persistent_fits(const persistent_shape& shape, std::uint32_t processors);

/// bf16 pairs of a row that one layer exchanges: queries, keys and values, attended, gated.
constexpr std::uint32_t words_of_row(const persistent_shape& s) {
  return ((s.heads + 2 * s.kv_heads) * s.head_dim + s.heads * s.head_dim + s.intermediate) / 2;
}

} // namespace tokenrouter::gpu
