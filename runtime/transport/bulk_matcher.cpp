#include "runtime/transport/bulk_matcher.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/core/check.hpp"

namespace tokenrouter {

std::optional<bulk_matcher::pair> bulk_matcher::add(bulk_post post) {
  const std::pair key{post.out ? post.peer.value : post.self.value, post.tag};
  const auto found = open_.find(key);
  if (found == open_.end()) {
    open_.emplace(key, std::move(post));
    return std::nullopt;
  }
  check(found->second.out != post.out, "a tag is used once on each side");
  pair both{std::move(found->second), std::move(post)};
  open_.erase(found);
  if (!both.out.out)
    std::swap(both.out, both.in);
  return both;
}

void bulk_matcher::cancel(rank_id self, std::uint64_t operation) {
  std::erase_if(open_, [&](const auto& entry) {
    return entry.second.self == self && entry.second.operation == operation;
  });
}

void bulk_matcher::drop(rank_id rank) {
  std::erase_if(open_, [&](const auto& entry) {
    return entry.second.self == rank || entry.second.peer == rank;
  });
}

bool copy_bulk(const bulk_matcher::pair& both) {
  const auto from = both.out.buffer->bytes();
  const auto to = both.in.buffer->bytes();
  if (from.size() != to.size())
    return false;
  std::memcpy(to.data(), from.data(), from.size());
  return true;
}

void memory_bulk::send(rank_id to, std::uint64_t tag, std::uint64_t operation,
                       std::shared_ptr<bulk_buffer> buffer) {
  post({self_, to, true, tag, operation, std::move(buffer)});
}

void memory_bulk::receive(rank_id from, std::uint64_t tag, std::uint64_t operation,
                          std::shared_ptr<bulk_buffer> buffer) {
  post({self_, from, false, tag, operation, std::move(buffer)});
}

void memory_bulk::post(bulk_post x) {
  open_.emplace(x.operation, x.peer);
  if (std::find(forgotten_.begin(), forgotten_.end(), x.peer) != forgotten_.end())
    arrive(x.operation, false);
  else
    network_.accept(std::move(x));
}

void memory_bulk::cancel(std::uint64_t operation) {
  open_.erase(operation);
  network_.cancel(operation);
}

void memory_bulk::arrive(std::uint64_t operation, bool whole) {
  {
    const std::lock_guard guard(mutex_);
    arrived_.emplace_back(operation, whole);
  }
  network_.ring();
}

std::size_t memory_bulk::deliver() {
  std::vector<std::pair<std::uint64_t, bool>> arrived;
  {
    const std::lock_guard guard(mutex_);
    arrived.swap(arrived_);
  }
  for (const auto& [operation, whole] : arrived)
    if (open_.erase(operation) > 0 && sink_)
      sink_(operation, whole);
  return arrived.size();
}

bool memory_bulk::idle() const {
  const std::lock_guard guard(mutex_);
  return arrived_.empty();
}

void memory_bulk::forget(rank_id peer) {
  forgotten_.push_back(peer);
  for (const auto& [operation, with] : open_)
    if (with == peer) {
      network_.cancel(operation);
      arrive(operation, false);
    }
}

void memory_bulk::reset() {
  open_.clear();
  forgotten_.clear();
  const std::lock_guard guard(mutex_);
  arrived_.clear();
}

} // namespace tokenrouter
