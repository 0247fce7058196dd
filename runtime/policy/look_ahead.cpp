#include "runtime/policy/look_ahead.hpp"

#include <algorithm>

#include "runtime/core/limits.hpp"
#include "runtime/policy/block_ledger.hpp"

namespace tokenrouter {

std::uint32_t look_ahead_blocks(const look_ahead_query& query) {
  const std::uint32_t reserve_blocks = query.total_blocks / 8 + (query.total_blocks % 8 != 0);
  if (query.tokens_max <= query.tokens || query.free_blocks <= reserve_blocks)
    return 0;
  const std::uint32_t ahead_tokens =
      std::min(limits::look_ahead_tokens, query.tokens_max - query.tokens);
  const std::uint32_t wanted_blocks =
      blocks_for(query.tokens + ahead_tokens) - blocks_for(query.tokens);
  return std::min(wanted_blocks, query.free_blocks - reserve_blocks);
}

} // namespace tokenrouter
