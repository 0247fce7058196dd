#include "runtime/transport/bulk_mover.hpp"

#include <algorithm>
#include <utility>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

constexpr std::size_t spare_buffers_max = 8;

} // namespace

bulk_mover::bulk_mover(rank_id self, bulk_wire* wire, std::size_t bytes_max)
    : self_(self), wire_(wire), bytes_max_(bytes_max) {
  if (wire_ != nullptr)
    wire_->on_end([this](std::uint64_t operation, bool whole) { end(operation, whole); });
}

bulk_mover::~bulk_mover() {
  if (wire_ == nullptr)
    return;
  for (const auto& [number, x] : transfers_)
    if (x.stage == bulk_stage::moving && !x.at_home)
      wire_->cancel(number);
  wire_->on_end([](std::uint64_t, bool) {});
}

std::uint64_t bulk_mover::prepare(bulk_way way, std::size_t bytes, observer told) {
  check(bytes > 0, "a bulk transfer has something to move");
  const std::uint64_t number = next_transfer_++;
  auto& x = transfers_[number];
  x.way = way;
  x.bytes = bytes;
  x.told = std::move(told);
  lane_of(way).queue.push_back(number);
  admit(way);
  return number;
}

/// Gives buffers to those who wait, in order, as far as the limit goes.
void bulk_mover::admit(bulk_way way) {
  auto& mine = lane_of(way);
  while (!mine.queue.empty()) {
    const std::uint64_t number = mine.queue.front();
    auto& x = transfers_.at(number);
    if (mine.used_bytes > 0 && mine.used_bytes + x.bytes > bytes_max_)
      return;
    mine.queue.pop_front();
    mine.used_bytes += x.bytes;
    x.buffer = take_buffer(x.bytes);
    x.stage = bulk_stage::ready;
    x.told(number);
  }
}

std::shared_ptr<bulk_buffer> bulk_mover::take_buffer(std::size_t bytes) {
  const auto fits = std::find_if(spare_.begin(), spare_.end(), [&](const auto& one) {
    return one->capacity_bytes() >= bytes && one->capacity_bytes() / 2 <= bytes;
  });
  std::shared_ptr<bulk_buffer> out;
  if (fits == spare_.end()) {
    out = std::make_shared<bulk_buffer>(bytes);
  } else {
    out = std::move(*fits);
    spare_.erase(fits);
  }
  out->use(bytes);
  return out;
}

/// Unless the wire or a model that was stopped still holds it.
void bulk_mover::keep_buffer(std::shared_ptr<bulk_buffer> buffer) {
  if (buffer == nullptr || buffer.use_count() > 1)
    return;
  if (spare_.size() == spare_buffers_max)
    spare_.erase(spare_.begin());
  spare_.push_back(std::move(buffer));
}

void bulk_mover::send(std::uint64_t number, rank_id to, std::uint64_t tag) {
  check(transfers_.at(number).way == bulk_way::out, "what goes out is sent");
  post(number, to, tag);
}

void bulk_mover::receive(std::uint64_t number, rank_id from, std::uint64_t tag) {
  check(transfers_.at(number).way == bulk_way::in, "what comes in is received");
  post(number, from, tag);
}

void bulk_mover::post(std::uint64_t number, rank_id peer, std::uint64_t tag) {
  auto& x = transfers_.at(number);
  check(x.stage == bulk_stage::ready && tag != 0, "a transfer is posted once, when it is ready");
  x.stage = bulk_stage::moving;
  x.tag = tag;
  x.at_home = peer == self_;
  if (x.at_home) {
    meet_at_home(number, tag);
    return;
  }
  check(wire_ != nullptr, "another rank is reached by a wire");
  if (x.way == bulk_way::out)
    wire_->send(peer, tag, number, x.buffer);
  else
    wire_->receive(peer, tag, number, x.buffer);
}

/// Between two of this rank the buffers change places.
void bulk_mover::meet_at_home(std::uint64_t number, std::uint64_t tag) {
  auto& pair = at_home_[tag];
  (transfers_.at(number).way == bulk_way::out ? pair.from : pair.to) = number;
  if (pair.from == 0 || pair.to == 0)
    return;
  const home_pair both = pair;
  at_home_.erase(tag);
  auto& from = transfers_.at(both.from);
  auto& to = transfers_.at(both.to);
  const bool whole = from.bytes == to.bytes;
  if (whole)
    std::swap(from.buffer, to.buffer);
  end(both.from, whole);
  end(both.to, whole);
}

void bulk_mover::end(std::uint64_t number, bool whole) {
  const auto found = transfers_.find(number);
  if (found == transfers_.end())
    return; // released while its end was on the way here
  found->second.stage = whole ? bulk_stage::moved : bulk_stage::failed;
  found->second.told(number);
}

void bulk_mover::release(std::uint64_t number) {
  const auto found = transfers_.find(number);
  check(found != transfers_.end(), "a transfer is released once");
  auto gone = std::move(found->second);
  transfers_.erase(found);
  auto& mine = lane_of(gone.way);
  if (gone.stage == bulk_stage::queued) {
    std::erase(mine.queue, number);
    admit(gone.way); // a large one that was first may have held up those behind it
    return;
  }
  if (gone.stage == bulk_stage::moving) {
    if (gone.at_home)
      at_home_.erase(gone.tag);
    else
      wire_->cancel(number);
  }
  mine.used_bytes -= gone.bytes;
  keep_buffer(std::move(gone.buffer));
  admit(gone.way);
}

} // namespace tokenrouter
