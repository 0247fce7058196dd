#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/policy/block_ledger.hpp"

/// Blocks that no request holds while KV moves between replicas: pinned ones are read by a sibling,
/// reserved ones are being filled.
namespace tokenrouter {

std::uint32_t block_ledger::known_tokens(std::span<const token_id> tokens) const {
  return static_cast<std::uint32_t>(index_.count_known(tokens)) * limits::block_tokens;
}

std::vector<block_id> block_ledger::pin(std::uint64_t pin, std::span<const token_id> tokens,
                                        std::uint32_t first_block, std::uint32_t block_count) {
  check(!pins_.contains(pin), "a pin is made once");
  const std::size_t end = std::size_t{first_block} + block_count;
  auto blocks = index_.match(tokens, end);
  if (block_count == 0 || blocks.size() < end)
    return {};
  blocks.erase(blocks.begin(), blocks.begin() + first_block);
  for (const block_id block : blocks)
    ++references_[block];
  pins_.emplace(pin, blocks);
  return blocks;
}

void block_ledger::unpin(std::uint64_t pin) {
  const auto found = pins_.find(pin);
  if (found == pins_.end())
    return;
  for (const block_id block : found->second)
    drop(block);
  pins_.erase(found);
}

std::vector<block_id> block_ledger::reserve(std::uint64_t reservation, std::uint32_t block_count) {
  check(!reserved_.contains(reservation), "a reservation is made once");
  std::vector<block_id> blocks;
  while (blocks.size() < block_count && (!free_.empty() || forget_one_cached()))
    blocks.push_back(take_free());
  if (!blocks.empty())
    reserved_.emplace(reservation, blocks);
  return blocks;
}

std::uint32_t block_ledger::join(std::uint64_t reservation, const joining& x) {
  std::vector<block_id> blocks;
  if (const auto found = reserved_.find(reservation); found != reserved_.end()) {
    blocks = std::move(found->second);
    reserved_.erase(found);
  }
  check(x.filled_blocks <= blocks.size(), "no more blocks are filled than were reserved");
  std::uint32_t joined = 0;
  if (x.filled_blocks > 0 && table(x.request).size() == x.have_blocks) {
    auto& mine = entries_[x.request];
    mine.age = x.age;
    unpark(mine);
    joined = x.filled_blocks;
    mine.table.insert(mine.table.end(), blocks.begin(), blocks.begin() + joined);
    remember(x.request, x.tokens.first(mine.table.size() * limits::block_tokens));
  }
  for (std::size_t i = joined; i < blocks.size(); ++i)
    drop(blocks[i]);
  return joined * limits::block_tokens;
}

} // namespace tokenrouter
