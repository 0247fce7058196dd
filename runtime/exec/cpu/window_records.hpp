#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/ids.hpp"
#include "runtime/exec/cpu/kv_layout.hpp"
#include "runtime/exec/heads/head.hpp"

namespace tokenrouter::cpu {

/// What heads with a window read of earlier positions: for each answered position its hidden state
/// and then its largest raw logits, descending, in the KV block that holds the position. So
/// whatever keeps, copies, shares, ships or drops KV does the same to its record. Nothing is kept
/// of positions that were not answered.
class window_records {
 public:
  /// `layout`: with the record_floats of the heads.
  window_records(const kv_layout& layout, std::uint32_t hidden_size)
      : layout_(layout), hidden_size_(hidden_size) {}

  bool kept() const { return layout_.record_floats > 0; }
  /// Largest logits in a record.
  std::uint32_t top_logits() const { return kept() ? layout_.record_floats - hidden_size_ : 0; }

  /// The record of a position, through the table of its request.
  std::span<float> at(std::byte* pool, const block_id* blocks, std::uint32_t position) const;

  /// Makes head_input::window in `out`: the records up to `position`, zeros for those before
  /// `start_position`. A head that wants fewer logits than a record has gets the first of them.
  void gather(std::byte* pool, const block_id* blocks, std::uint32_t start_position,
              std::uint32_t position, const head_window& window, std::vector<float>& out) const;

 private:
  kv_layout layout_;
  std::uint32_t hidden_size_;
};

} // namespace tokenrouter::cpu
