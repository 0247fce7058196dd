#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

enum class handoff_verdict : std::uint8_t {
  accept,   ///< append what is new and take the turn
  stale,    ///< an older or the same turn: drop and count
  need_gap, ///< it starts beyond what is known here: ask the sender for the rest
  diverged, ///< it contradicts tokens committed here: the request cannot go on
};

/// What the receiver knows of the request. For one it has never seen, or whose tokens it has lost:
/// turn 0, no tokens.
struct handoff_local {
  turn_number turn = 0;                ///< newest turn seen
  std::span<const token_id> committed; ///< prompt and output as of that turn
  std::uint32_t tentative_tokens = 0;  ///< known beyond them, not committed: these may change
};

struct handoff_view {
  turn_number turn = 0;
  std::uint32_t offset = 0;         ///< position of tokens[0]
  std::span<const token_id> tokens; ///< committed tokens from `offset` to the end; never empty
};

/// Judges a handoff on arrival. The part that overlaps committed tokens must repeat them: they
/// never change. One that starts among tentative tokens confirms those before its start.
handoff_verdict judge_handoff(const handoff_local& local, const handoff_view& incoming);

} // namespace tokenrouter
