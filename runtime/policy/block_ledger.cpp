#include "runtime/policy/block_ledger.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

std::uint32_t blocks_for(std::uint32_t tokens) {
  return (tokens + limits::block_tokens - 1) / limits::block_tokens;
}

block_ledger::block_ledger(std::uint32_t blocks) : total_blocks_(blocks) {
  free_.reserve(blocks);
  for (std::uint32_t i = blocks; i > 0; --i)
    free_.push_back(i - 1);
}

block_ledger::lease_result block_ledger::lease(std::span<const want> wants) {
  lease_result out;
  out.granted.reserve(wants.size());
  current_lease_ = ++stamp_;
  for (const auto& w : wants) {
    // A want was made for what its request held; if an earlier want took that away, it is void.
    if (std::find(out.evicted.begin(), out.evicted.end(), w.request) != out.evicted.end()) {
      out.granted.push_back(false);
      continue;
    }
    const std::uint32_t needed = blocks_for(w.tokens);
    auto& mine = entries_[w.request];
    mine.age = w.age;
    unpark(mine);
    bool fits = needed <= total_blocks_;
    while (fits && needed > mine.table.size() && needed - mine.table.size() > free_.size())
      fits = evict_for(w.request, w.age, out.evicted);
    if (fits) {
      while (mine.table.size() < needed) {
        mine.table.push_back(free_.back());
        free_.pop_back();
      }
      mine.lease_stamp = current_lease_;
    } else if (mine.table.empty()) {
      entries_.erase(w.request);
    }
    out.granted.push_back(fits);
  }
  return out;
}

bool block_ledger::evict_for(request_id needy, std::uint64_t age,
                             std::vector<request_id>& evicted) {
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
    return false;
  const request_id id = victim->first;
  give_back(victim->second);
  entries_.erase(victim);
  evicted.push_back(id);
  return true;
}

void block_ledger::park(request_id request) {
  const auto it = entries_.find(request);
  if (it == entries_.end())
    return;
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

bool block_ledger::consistent() const {
  std::vector<block_id> all(free_);
  for (const auto& [id, e] : entries_)
    all.insert(all.end(), e.table.begin(), e.table.end());
  std::sort(all.begin(), all.end());
  if (all.size() != total_blocks_)
    return false;
  for (std::uint32_t i = 0; i < total_blocks_; ++i)
    if (all[i] != i)
      return false;
  return true;
}

void block_ledger::unpark(entry& e) {
  if (e.parked_stamp != 0)
    parked_.erase(e.parked_stamp);
  e.parked_stamp = 0;
}

void block_ledger::give_back(entry& e) {
  unpark(e);
  free_.insert(free_.end(), e.table.rbegin(), e.table.rend());
  e.table.clear();
}

} // namespace tokenrouter
