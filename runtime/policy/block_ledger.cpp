#include "runtime/policy/block_ledger.hpp"

#include <algorithm>
#include <utility>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/policy/look_ahead.hpp"

namespace tokenrouter {

std::uint32_t blocks_for(std::uint32_t tokens) {
  return (tokens + limits::block_tokens - 1) / limits::block_tokens;
}

block_ledger::block_ledger(std::uint32_t blocks, bool keep_prefixes)
    : total_blocks_(blocks), keep_prefixes_(keep_prefixes), references_(blocks, 0) {
  free_.reserve(blocks);
  for (std::uint32_t i = blocks; i > 0; --i)
    free_.push_back(i - 1);
}

block_id block_ledger::take_free() {
  const block_id block = free_.back();
  free_.pop_back();
  references_[block] = 1;
  return block;
}

void block_ledger::drop(block_id block) {
  check(references_[block] > 0, "a block is dropped once for each reference");
  if (--references_[block] == 0)
    free_.push_back(block);
}

std::size_t block_ledger::shared_from(const entry& e, std::size_t first, std::size_t end) const {
  std::size_t shared = 0;
  for (std::size_t i = first; i < std::min(end, e.table.size()); ++i)
    shared += references_[e.table[i]] > 1;
  return shared;
}

/// Makes a block of the table that only the cache shares the request's own again.
bool block_ledger::unshare_one(const entry& e, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < std::min(end, e.table.size()); ++i)
    if (const auto gone = index_.forget(e.table[i]); !gone.empty()) {
      for (const block_id block : gone)
        drop(block);
      return true;
    }
  return false;
}

/// Grows the table and replaces shared blocks that the step will write. Requires enough free ones.
void block_ledger::extend(entry& e, const want& w, std::vector<copy>& copies) {
  const std::size_t needed = blocks_for(w.tokens);
  for (std::size_t i = w.kept_tokens / limits::block_tokens; i < std::min(needed, e.table.size());
       ++i) {
    const block_id old = e.table[i];
    if (references_[old] <= 1)
      continue;
    e.table[i] = take_free();
    drop(old);
    if (w.kept_tokens > i * limits::block_tokens)
      copies.push_back({old, e.table[i]});
  }
  while (e.table.size() < needed)
    e.table.push_back(take_free());
}

block_ledger::lease_result block_ledger::lease(std::span<const want> wants,
                                               std::span<const holding> held) {
  lease_result out;
  out.granted.reserve(wants.size());
  current_lease_ = ++stamp_;
  std::vector<bool> grew(wants.size(), false);
  for (const auto& w : wants) {
    // A want was made for what its request held; if an earlier want took that away, it is void.
    if (std::find(out.evicted.begin(), out.evicted.end(), w.request) != out.evicted.end()) {
      out.granted.push_back(false);
      continue;
    }
    const std::size_t needed = blocks_for(w.tokens);
    auto& mine = entries_[w.request];
    mine.age = w.age;
    unpark(mine);
    grew[out.granted.size()] = needed > mine.table.size();
    const auto lacking = [&] {
      const std::size_t grown = needed > mine.table.size() ? needed - mine.table.size() : 0;
      return grown + shared_from(mine, w.kept_tokens / limits::block_tokens, needed);
    };
    bool fits = needed <= total_blocks_;
    while (fits && lacking() > free_.size()) {
      if (!std::exchange(out.took_look_ahead, true))
        take_look_ahead(wants, held);
      else
        fits = evict_for(w.request, w.age, out.evicted) ||
               unshare_one(mine, w.kept_tokens / limits::block_tokens, needed);
    }
    if (fits) {
      extend(mine, w, out.copies);
      mine.lease_stamp = current_lease_;
    } else if (mine.table.empty()) {
      entries_.erase(w.request);
    }
    out.granted.push_back(fits);
  }
  for (std::size_t i = 0; i < wants.size(); ++i) {
    if (out.granted[i] && grew[i] && !out.took_look_ahead)
      look_ahead(entries_.at(wants[i].request), wants[i]);
    out.own_tokens.push_back(out.granted[i] ? own_tokens(entries_.at(wants[i].request), wants[i])
                                            : 0);
  }
  return out;
}

/// Whoever has look-ahead is in use, and all who are in use are named here.
void block_ledger::take_look_ahead(std::span<const want> wants, std::span<const holding> held) {
  for (const auto& w : wants)
    cut(w.request, w.tokens);
  for (const auto& h : held)
    cut(h.request, h.tokens);
}

void block_ledger::look_ahead(entry& e, const want& w) {
  for (std::uint32_t more =
           look_ahead_blocks({w.tokens, w.tokens_max, free_blocks(), total_blocks_});
       more > 0; --more)
    e.table.push_back(take_free());
}

std::uint32_t block_ledger::own_tokens(const entry& e, const want& w) const {
  std::uint32_t own = blocks_for(w.tokens);
  while (own < e.table.size() && references_[e.table[own]] == 1)
    ++own;
  return own * limits::block_tokens;
}

void block_ledger::cut(request_id request, std::uint32_t tokens) {
  const auto it = entries_.find(request);
  if (it == entries_.end())
    return;
  auto& table = it->second.table;
  while (table.size() > blocks_for(tokens)) {
    drop(table.back());
    table.pop_back();
  }
}

std::uint32_t block_ledger::adopt(request_id request, std::uint64_t age,
                                  std::span<const token_id> tokens, std::uint32_t tokens_max) {
  auto& mine = entries_[request];
  if (!mine.table.empty())
    return 0;
  mine.age = age;
  unpark(mine);
  mine.table = index_.match(tokens, tokens_max / limits::block_tokens);
  for (const block_id block : mine.table)
    ++references_[block];
  const auto covered = static_cast<std::uint32_t>(mine.table.size()) * limits::block_tokens;
  if (mine.table.empty())
    entries_.erase(request);
  return covered;
}

void block_ledger::remember(request_id request, std::span<const token_id> tokens) {
  const auto it = entries_.find(request);
  if (it == entries_.end() || !keep_prefixes_)
    return;
  for (const block_id block : index_.insert(tokens, it->second.table))
    ++references_[block];
}

/// The cached block that no request has used for longest, if no longer prefix needs it.
bool block_ledger::forget_one_cached() {
  const auto cached = index_.evict([&](block_id b) { return references_[b] == 1; });
  if (cached)
    drop(*cached);
  return cached.has_value();
}

bool block_ledger::evict_for(request_id needy, std::uint64_t age,
                             std::vector<request_id>& evicted) {
  if (forget_one_cached())
    return true;
  if (!parked_.empty()) {
    const request_id victim = parked_.begin()->second;
    give_back(entries_.at(victim));
    entries_.erase(victim);
    evicted.push_back(victim);
    return true;
  }
  auto victim = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const auto& e = it->second;
    if (it->first == needy || e.table.empty() || e.age <= age || e.lease_stamp == current_lease_)
      continue;
    if (victim == entries_.end() || e.age > victim->second.age)
      victim = it;
  }
  if (victim == entries_.end())
    return forget_unused();
  const request_id id = victim->first;
  give_back(victim->second);
  entries_.erase(victim);
  evicted.push_back(id);
  return true;
}

/// A cached block that no request uses, but that stands before one that is in use: the whole branch
/// is forgotten, what is in use stays with its requests.
bool block_ledger::forget_unused() {
  std::optional<block_id> unused;
  index_.for_each([&](block_id block) {
    if (references_[block] == 1)
      unused = block;
  });
  if (!unused)
    return false;
  for (const block_id block : index_.forget(*unused))
    drop(block);
  return true;
}

void block_ledger::park(request_id request, std::uint32_t tokens) {
  const auto it = entries_.find(request);
  if (it == entries_.end())
    return;
  cut(request, tokens);
  unpark(it->second);
  it->second.parked_stamp = ++stamp_;
  parked_.emplace(it->second.parked_stamp, request);
}

void block_ledger::release(request_id request) {
  const auto it = entries_.find(request);
  if (it == entries_.end())
    return;
  give_back(it->second);
  entries_.erase(it);
}

std::span<const block_id> block_ledger::table(request_id request) const {
  const auto it = entries_.find(request);
  return it == entries_.end() ? std::span<const block_id>{} : std::span(it->second.table);
}

std::uint32_t block_ledger::cached_blocks() const {
  std::uint32_t count = 0;
  index_.for_each([&](block_id block) { count += references_[block] == 1; });
  return count;
}

bool block_ledger::consistent() const {
  std::vector<std::uint32_t> named(total_blocks_, 0);
  for (const auto& [id, e] : entries_)
    for (const block_id block : e.table)
      ++named[block];
  index_.for_each([&](block_id block) { ++named[block]; });
  for (const auto* loans : {&pins_, &reserved_})
    for (const auto& [number, blocks] : *loans)
      for (const block_id block : blocks)
        ++named[block];
  if (named != references_)
    return false;
  std::vector<block_id> free(free_);
  std::sort(free.begin(), free.end());
  if (std::adjacent_find(free.begin(), free.end()) != free.end())
    return false;
  std::size_t unused = 0;
  for (const std::uint32_t count : named)
    unused += count == 0;
  return unused == free.size() &&
         std::all_of(free.begin(), free.end(), [&](block_id b) { return named[b] == 0; });
}

void block_ledger::unpark(entry& e) {
  if (e.parked_stamp != 0)
    parked_.erase(e.parked_stamp);
  e.parked_stamp = 0;
}

void block_ledger::give_back(entry& e) {
  unpark(e);
  for (auto block = e.table.rbegin(); block != e.table.rend(); ++block)
    drop(*block);
  e.table.clear();
}

} // namespace tokenrouter
