#include "actors/kv_mover_state.hpp"

#include <algorithm>

namespace tokenrouter {

kv_mover_state::kv_mover_state(kv_mover_config config, bulk_mover& mover, bulk_mover::observer told)
    : config_(std::move(config)), mover_(mover), told_(std::move(told)) {
  for (const auto& [replica, rank] : config_.siblings)
    siblings_[replica].rank = rank;
}

void kv_mover_state::on_facts(const kv_facts& x, kv_mover_effects& fx) {
  facts_ = x;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(x.address.data());
  for (auto& [replica, one] : siblings_) {
    fx.greetings.push_back(
        {config_.self, {replica, config_.self.index}, x.layout, {bytes, bytes + x.address.size()}});
    meet(replica, one, fx);
  }
}

void kv_mover_state::on_greeting(kv_greeting&& x, kv_mover_effects& fx) {
  const auto found = siblings_.find(x.from.replica);
  if (found == siblings_.end() || x.from.index != config_.self.index)
    return;
  auto& one = found->second;
  one.greeted = true;
  one.layout = x.layout;
  one.address = std::move(x.address);
  meet(x.from.replica, one, fx);
}

/// Both are loaded: they may take KV from one another if it means the same to them.
void kv_mover_state::meet(replica_id who, sibling& x, kv_mover_effects& fx) const {
  if (facts_.bytes_per_block == 0 || !x.greeted || x.way != reach::unknown)
    return;
  if (x.layout != facts_.layout) {
    settle(who, x, reach::not_alike, fx);
  } else if (x.address.empty() || !config_.reads_in_place) {
    settle(who, x, reach::by_bulk, fx);
  } else {
    x.way = reach::asked;
    const auto* bytes = reinterpret_cast<const std::byte*>(x.address.data());
    fx.reaches.push_back({who, {bytes, bytes + x.address.size()}});
  }
}

void kv_mover_state::settle(replica_id who, sibling& x, reach way, kv_mover_effects& fx) const {
  x.way = way;
  fx.ways.push_back({config_.self, config_.self.replica, who, way != reach::not_alike,
                     way == reach::in_place, facts_.bytes_per_block});
}

void kv_mover_state::on_reached(const kv_reached& x, kv_mover_effects& fx) {
  settle(x.sibling, siblings_.at(x.sibling), x.reached ? reach::in_place : reach::by_bulk, fx);
}

bool kv_mover_state::known(std::span<const block_id> blocks) const {
  return std::ranges::all_of(blocks, [this](block_id x) { return x < config_.kv_blocks; });
}

void kv_mover_state::on_fill(kv_fill&& x, kv_mover_effects& fx) {
  const auto from = siblings_.find(x.sibling);
  const bool can = from != siblings_.end() && !from->second.lost &&
                   std::ranges::all_of(
                       x.copies, [this](const block_copy& c) { return c.to < config_.kv_blocks; });
  const reach way = can ? from->second.way : reach::unknown;
  if (way != reach::in_place && way != reach::by_bulk) {
    answer(x, false, fx);
    return;
  }
  const std::uint64_t number = next_number_++;
  auto& mine = fills_[number];
  mine.order = std::move(x);
  if (way == reach::in_place) {
    mine.at = fill_stage::importing;
    fx.direct_reads.push_back({number, mine.order.sibling, mine.order.copies});
    return;
  }
  mine.transfer =
      mover_.prepare(bulk_way::in, mine.order.copies.size() * facts_.bytes_per_block, told_);
  fill_of_.emplace(mine.transfer, number);
}

void kv_mover_state::on_bulk(std::uint64_t transfer, kv_mover_effects& fx) {
  if (const auto number = fill_of_.find(transfer); number != fill_of_.end())
    move_fill(fills_.find(number->second), fx);
  else if (const auto other = gift_of_.find(transfer); other != gift_of_.end())
    move_gift(gifts_.find(other->second), fx);
}

void kv_mover_state::move_fill(fill_map::iterator at, kv_mover_effects& fx) {
  auto& [number, mine] = *at;
  switch (mover_.test(mine.transfer)) {
  case bulk_stage::ready: {
    if (mine.at != fill_stage::waiting)
      break;
    mine.at = fill_stage::wished;
    const std::uint64_t tag = mover_.new_tag();
    mover_.receive(mine.transfer, siblings_.at(mine.order.sibling).rank, tag);
    kv_wish wish{config_.self, {mine.order.sibling, config_.self.index}, number, tag, {}};
    for (const block_copy& one : mine.order.copies)
      wish.blocks.push_back(one.from);
    fx.wishes.push_back(std::move(wish));
    break;
  }
  case bulk_stage::moved:
    import_if_here(number, mine, fx);
    break;
  case bulk_stage::failed:
    end(at, false, fx);
    break;
  case bulk_stage::queued:
  case bulk_stage::moving:
    break;
  }
}

void kv_mover_state::on_parcel(const kv_parcel& x, kv_mover_effects& fx) {
  const auto at = fills_.find(x.number);
  if (at == fills_.end() || at->second.at != fill_stage::wished ||
      at->second.order.sibling != x.from.replica)
    return;
  if (!x.sent) {
    end(at, false, fx);
    return;
  }
  at->second.told = true;
  at->second.checksum = x.checksum;
  import_if_here(at->first, at->second, fx);
}

/// Data and word of it come in any order.
void kv_mover_state::import_if_here(std::uint64_t number, fill& x, kv_mover_effects& fx) const {
  if (!x.told || x.at != fill_stage::wished || mover_.test(x.transfer) != bulk_stage::moved)
    return;
  x.at = fill_stage::importing;
  import_blocks order{number, {}, mover_.buffer(x.transfer), x.checksum};
  for (const block_copy& one : x.order.copies)
    order.blocks.push_back(one.to);
  fx.imports.push_back(std::move(order));
}

void kv_mover_state::on_imported(const blocks_imported& x, kv_mover_effects& fx) {
  end(fills_.find(x.number), x.sound, fx);
}

/// Only once there is a buffer is anything exported.
void kv_mover_state::on_wish(kv_wish&& x, kv_mover_effects& fx) {
  const auto reader = siblings_.find(x.from.replica);
  if (reader == siblings_.end() || reader->second.lost)
    return;
  if (facts_.bytes_per_block == 0 || !known(x.blocks)) {
    answer(x, false, 0, fx);
    return;
  }
  const std::uint64_t number = next_number_++;
  auto& mine = gifts_[number];
  mine.wish = std::move(x);
  mine.transfer =
      mover_.prepare(bulk_way::out, mine.wish.blocks.size() * facts_.bytes_per_block, told_);
  gift_of_.emplace(mine.transfer, number);
}

void kv_mover_state::move_gift(gift_map::iterator at, kv_mover_effects& fx) {
  auto& [number, mine] = *at;
  const bulk_stage now = mover_.test(mine.transfer);
  if (mine.at == gift_stage::waiting && now == bulk_stage::ready) {
    mine.at = gift_stage::exporting;
    fx.exports.push_back({number, mine.wish.blocks, mover_.buffer(mine.transfer)});
  } else if (mine.at == gift_stage::sending && now != bulk_stage::moving) {
    if (now == bulk_stage::failed)
      answer(mine.wish, false, 0, fx);
    end(at);
  }
}

void kv_mover_state::on_exported(const blocks_exported& x, kv_mover_effects& fx) {
  const auto at = gifts_.find(x.number);
  auto& mine = at->second;
  if (mine.unwanted) {
    end(at);
    return;
  }
  mine.at = gift_stage::sending;
  answer(mine.wish, true, x.checksum, fx);
  mover_.send(mine.transfer, siblings_.at(mine.wish.from.replica).rank, mine.wish.tag);
}

void kv_mover_state::answer(const kv_fill& order, bool sound, kv_mover_effects& fx) const {
  fx.filled.push_back({config_.self, config_.self.replica, order.fetch, order.first_block, sound});
}

void kv_mover_state::answer(const kv_wish& wish, bool sent, std::uint32_t checksum,
                            kv_mover_effects& fx) const {
  fx.parcels.push_back({config_.self, wish.from, wish.number, sent, checksum});
}

/// What the model is at goes on: its answer ends it.
void kv_mover_state::on_replicas_lost(std::span<const replica_id> lost, kv_mover_effects& fx) {
  const bool all = std::ranges::find(lost, config_.self.replica) != lost.end();
  for (auto& [replica, one] : siblings_)
    if (all || std::ranges::find(lost, replica) != lost.end())
      one.lost = true;
  for (auto next = fills_.begin(); next != fills_.end();) {
    const auto at = next++;
    if (siblings_.at(at->second.order.sibling).lost && at->second.at != fill_stage::importing)
      end(at, false, fx);
  }
  for (auto next = gifts_.begin(); next != gifts_.end();) {
    const auto at = next++;
    if (!siblings_.at(at->second.wish.from.replica).lost)
      continue;
    at->second.unwanted = true;
    if (at->second.at != gift_stage::exporting)
      end(at);
  }
}

void kv_mover_state::end(fill_map::iterator at, bool sound, kv_mover_effects& fx) {
  answer(at->second.order, sound, fx);
  fill_of_.erase(at->second.transfer);
  if (at->second.transfer != 0)
    mover_.release(at->second.transfer);
  fills_.erase(at);
}

void kv_mover_state::end(gift_map::iterator at) {
  gift_of_.erase(at->second.transfer);
  mover_.release(at->second.transfer);
  gifts_.erase(at);
}

} // namespace tokenrouter
