#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tokenrouter {

/// A sequence that has the turn and waits for its model.
struct batch_candidate {
  std::uint32_t index = 0;          ///< the caller's name for it
  std::uint32_t lacking_tokens = 0; ///< committed tokens without KV; at least 1
  std::uint64_t age = 0;            ///< order of arrival at this replica, smaller is older
};

struct batch_limits {
  std::uint32_t rows_max = 1;
  std::uint32_t prefill_chunk_tokens = 1; ///< most tokens of rows that lack more than one
};

struct planned_row {
  std::uint32_t index = 0;
  std::uint32_t token_count = 0;
  bool last = false; ///< computes the position that proposes a token

  friend bool operator==(const planned_row&, const planned_row&) = default;
};

/// Forms one step. Oldest first, so that the oldest sequence is in every step and can never be
/// starved of rows or blocks. A row that lacks one token costs nothing of the prefill budget;
/// longer rows (first sends, handoff suffixes) share it in order of age and are cut into chunks
/// where it ends. Every step with candidates has at least one row. Requires rows_max ≥ 1,
/// prefill_chunk_tokens ≥ 1.
std::vector<planned_row> plan_batch(std::span<const batch_candidate> candidates,
                                    batch_limits limits);

} // namespace tokenrouter
