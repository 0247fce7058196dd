#include "runtime/exec/cpu/window_records.hpp"

#include <algorithm>

namespace tokenrouter::cpu {

std::span<float> window_records::at(std::byte* pool, const block_id* blocks,
                                    std::uint32_t position) const {
  std::byte* block = pool + std::size_t{blocks[position / lanes]} * layout_.block_bytes;
  return {reinterpret_cast<float*>(block + layout_.record_offset(position)), layout_.record_floats};
}

void window_records::gather(std::byte* pool, const block_id* blocks, std::uint32_t start_position,
                            std::uint32_t position, const head_window& window,
                            std::vector<float>& out) const {
  const std::size_t floats = std::size_t{hidden_size_} + window.top_logits;
  out.assign(window.positions * floats, 0.0f);
  auto next = out.begin();
  // Distances and not positions, which would pass below 0.
  for (std::uint32_t back = window.positions; back-- > 0;
       next += static_cast<std::ptrdiff_t>(floats))
    if (position >= back && position - back >= start_position)
      std::ranges::copy(at(pool, blocks, position - back).first(floats), next);
}

} // namespace tokenrouter::cpu
