#include "runtime/policy/leased_blocks.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/policy/block_ledger.hpp"

namespace tokenrouter {

namespace {

std::uint32_t whole_blocks_tokens(std::uint32_t tokens) {
  return tokens - tokens % limits::block_tokens;
}

} // namespace

void leased_blocks::grant(std::span<const block_id> table, std::uint32_t from_tokens,
                          std::uint32_t end_tokens) {
  check(end_tokens <= table.size() * limits::block_tokens, "a table covers what may be written");
  table_.assign(table.begin(), table.end());
  from_tokens_ = whole_blocks_tokens(from_tokens);
  end_tokens_ = end_tokens;
}

bool leased_blocks::cover(std::uint32_t first, std::uint32_t end) const {
  return first >= from_tokens_ && end <= end_tokens_;
}

void leased_blocks::share(std::uint32_t tokens) {
  from_tokens_ = std::max(from_tokens_, whole_blocks_tokens(tokens));
}

void leased_blocks::cut(std::uint32_t tokens) {
  const std::uint32_t blocks = blocks_for(tokens);
  table_.resize(std::min<std::size_t>(table_.size(), blocks));
  end_tokens_ = std::min(end_tokens_, blocks * limits::block_tokens);
}

void leased_blocks::clear() {
  table_.clear();
  from_tokens_ = end_tokens_ = 0;
}

} // namespace tokenrouter
