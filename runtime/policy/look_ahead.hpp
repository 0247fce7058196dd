#pragma once

#include <cstdint>

namespace tokenrouter {

/// A request that must have more blocks, and the pool it takes them from.
struct look_ahead_query {
  std::uint32_t tokens = 0;      ///< positions that its blocks must cover now
  std::uint32_t tokens_max = 0;  ///< the most it will ever need
  std::uint32_t free_blocks = 0; ///< when it has what it must have; cache does not count
  std::uint32_t total_blocks = 0;
};

/// Blocks to lease beyond what it must have: enough for the next limits::look_ahead_tokens
/// positions, none that it will never use, and none of the last eighth of the pool. So what is
/// leased ahead never costs anybody anything; under pressure it is the first to be taken back.
std::uint32_t look_ahead_blocks(const look_ahead_query& query);

} // namespace tokenrouter
