#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/core/ids.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

/// Which KV blocks spell which tokens: a radix tree whose edges are whole blocks of tokens. KV of a
/// position depends on the tokens up to it alone, so a block may serve every sequence that starts
/// with the same tokens, whoever made them. Pure bookkeeping: the owner counts references.
class prefix_index {
 public:
  prefix_index();

  /// Blocks of the longest known prefix of `tokens`, whole blocks only, at most `blocks_max` of
  /// them; they become the most recently used.
  std::vector<block_id> match(std::span<const token_id> tokens, std::size_t blocks_max);

  /// How many whole blocks `match` would find, without using them.
  std::size_t count_known(std::span<const token_id> tokens) const;

  /// Makes blocks[i] known for tokens [16 i, 16 i + 16), whole blocks only, as far as `blocks`
  /// goes. Where these tokens have a block already that one stays. Returns the blocks that are held
  /// here from now on.
  std::vector<block_id> insert(std::span<const token_id> tokens, std::span<const block_id> blocks);

  /// Forgets the least recently used block that no longer prefix needs and that `may_go` lets go.
  std::optional<block_id> evict(const std::function<bool(block_id)>& may_go);

  /// Forgets this block and all longer prefixes that need it; empty if it isn't held.
  std::vector<block_id> forget(block_id block);

  std::size_t block_count() const { return by_block_.size(); }

  /// Calls `visit` with every block held.
  void for_each(const std::function<void(block_id)>& visit) const;

 private:
  using edge = std::array<token_id, limits::block_tokens>;
  struct node {
    block_id block = 0;
    node* parent = nullptr;
    std::uint64_t used_stamp = 0;
    edge tokens{};
    std::map<edge, std::unique_ptr<node>> children;
  };

  static edge edge_at(std::span<const token_id> tokens, std::size_t index);
  void touch(node& n);
  void cut(node& n);

  std::unique_ptr<node> root_;
  std::map<std::uint64_t, node*> leaves_; ///< by used_stamp: least recent first
  std::unordered_map<block_id, node*> by_block_;
  std::uint64_t stamp_ = 0;
};

} // namespace tokenrouter
