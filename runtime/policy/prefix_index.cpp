#include "runtime/policy/prefix_index.hpp"

#include <algorithm>

namespace tokenrouter {

prefix_index::prefix_index() : root_(std::make_unique<node>()) {}

prefix_index::edge prefix_index::edge_at(std::span<const token_id> tokens, std::size_t index) {
  edge out;
  std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(index * limits::block_tokens),
              limits::block_tokens, out.begin());
  return out;
}

void prefix_index::touch(node& n) {
  const bool leaf = n.children.empty();
  if (leaf)
    leaves_.erase(n.used_stamp);
  n.used_stamp = ++stamp_;
  if (leaf)
    leaves_.emplace(n.used_stamp, &n);
}

std::vector<block_id> prefix_index::match(std::span<const token_id> tokens,
                                          std::size_t blocks_max) {
  std::vector<block_id> blocks;
  const std::size_t whole = std::min(tokens.size() / limits::block_tokens, blocks_max);
  node* at = root_.get();
  while (blocks.size() < whole) {
    const auto next = at->children.find(edge_at(tokens, blocks.size()));
    if (next == at->children.end())
      break;
    at = next->second.get();
    touch(*at);
    blocks.push_back(at->block);
  }
  return blocks;
}

std::size_t prefix_index::count_known(std::span<const token_id> tokens) const {
  const std::size_t whole = tokens.size() / limits::block_tokens;
  const node* at = root_.get();
  std::size_t known = 0;
  for (; known < whole; ++known) {
    const auto next = at->children.find(edge_at(tokens, known));
    if (next == at->children.end())
      break;
    at = next->second.get();
  }
  return known;
}

std::vector<block_id> prefix_index::insert(std::span<const token_id> tokens,
                                           std::span<const block_id> blocks) {
  std::vector<block_id> taken;
  const std::size_t whole = std::min(tokens.size() / limits::block_tokens, blocks.size());
  node* at = root_.get();
  for (std::size_t i = 0; i < whole; ++i) {
    const edge key = edge_at(tokens, i);
    if (const auto known = at->children.find(key); known != at->children.end()) {
      at = known->second.get();
      touch(*at);
      continue;
    }
    if (at->children.empty() && at != root_.get())
      leaves_.erase(at->used_stamp);
    auto fresh = std::make_unique<node>();
    fresh->block = blocks[i];
    fresh->parent = at;
    fresh->tokens = key;
    node* next = fresh.get();
    at->children.emplace(key, std::move(fresh));
    touch(*next);
    taken.push_back(blocks[i]);
    by_block_.emplace(blocks[i], next);
    at = next;
  }
  return taken;
}

std::optional<block_id> prefix_index::evict(const std::function<bool(block_id)>& may_go) {
  for (auto it = leaves_.begin(); it != leaves_.end(); ++it) {
    node* leaf = it->second;
    if (!may_go(leaf->block))
      continue;
    const block_id block = leaf->block;
    leaves_.erase(it);
    by_block_.erase(block);
    cut(*leaf);
    return block;
  }
  return std::nullopt;
}

/// Takes a node out of the tree; `n` is gone afterwards.
void prefix_index::cut(node& n) {
  node* parent = n.parent;
  parent->children.erase(edge(n.tokens));
  if (parent->children.empty() && parent != root_.get())
    leaves_.emplace(parent->used_stamp, parent);
}

std::vector<block_id> prefix_index::forget(block_id block) {
  std::vector<block_id> gone;
  const auto found = by_block_.find(block);
  if (found == by_block_.end())
    return gone;
  node* top = found->second;
  std::vector<node*> open{top};
  while (!open.empty()) {
    node* at = open.back();
    open.pop_back();
    if (at->children.empty())
      leaves_.erase(at->used_stamp);
    by_block_.erase(at->block);
    gone.push_back(at->block);
    for (auto& [key, child] : at->children)
      open.push_back(child.get());
  }
  cut(*top);
  return gone;
}

void prefix_index::for_each(const std::function<void(block_id)>& visit) const {
  std::vector<const node*> open{root_.get()};
  while (!open.empty()) {
    const node* at = open.back();
    open.pop_back();
    if (at != root_.get())
      visit(at->block);
    for (const auto& [key, child] : at->children)
      open.push_back(child.get());
  }
}

} // namespace tokenrouter
