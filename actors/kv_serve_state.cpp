#include "actors/kv_serve_state.hpp"

#include <algorithm>

namespace tokenrouter {

kv_serve_state::kv_serve_state(kv_fetcher_config config, bulk_mover& mover,
                               bulk_mover::observer told)
    : config_(std::move(config)), mover_(mover), told_(std::move(told)) {}

void kv_serve_state::on_ask(prefix_ask&& x, kv_fetcher_effects& fx) const {
  fx.peeks.push_back({x.from, x.fetch, std::move(x.tokens)});
}

void kv_serve_state::on_known(const prefix_known& x, kv_fetcher_effects& fx) const {
  fx.offers.push_back({config_.self, x.asker, x.fetch, x.tokens});
}

void kv_serve_state::answer(const serving& x, bool given, kv_fetcher_effects& fx,
                            std::vector<block_id> blocks, std::uint32_t checksum) const {
  fx.pieces.push_back({config_.self, x.wish.from, x.wish.fetch, x.wish.first_block, given,
                       std::move(blocks), checksum});
}

void kv_serve_state::on_fetch(kv_fetch&& x, kv_fetcher_effects& fx) {
  const auto sibling = std::find_if(config_.siblings.begin(), config_.siblings.end(),
                                    [&](const kv_sibling& one) { return one.replica == x.from; });
  serving mine;
  mine.wish = std::move(x);
  if (sibling == config_.siblings.end() || bytes_per_block_ == 0) {
    answer(mine, false, fx);
    return;
  }
  mine.rank = sibling->rank;
  const std::uint64_t number = next_number_++;
  auto& kept = servings_[number] = std::move(mine);
  if (kept.wish.tag == 0) {
    ask_for_pin(number, kept, fx);
    return;
  }
  kept.transfer = mover_.prepare(bulk_way::out, kept.wish.block_count * bytes_per_block_, told_);
  by_transfer_.emplace(kept.transfer, number);
}

/// Only once there is a buffer, so that no pin waits for one.
void kv_serve_state::ask_for_pin(std::uint64_t number, serving& x, kv_fetcher_effects& fx) const {
  x.at = stage::pinning;
  fx.pins.push_back({number, std::move(x.wish.tokens), x.wish.first_block, x.wish.block_count});
}

void kv_serve_state::on_pinned(blocks_pinned&& x, kv_fetcher_effects& fx) {
  const auto at = servings_.find(x.pin);
  auto& mine = at->second;
  if (x.blocks.empty() || mine.unwanted) {
    if (!x.blocks.empty())
      fx.unpins.push_back({x.pin});
    if (!mine.unwanted)
      answer(mine, false, fx);
    end(at);
    return;
  }
  if (mine.transfer == 0) {
    mine.at = stage::lent;
    answer(mine, true, fx, std::move(x.blocks));
    return;
  }
  mine.at = stage::exporting;
  fx.exports.push_back({x.pin, std::move(x.blocks), mover_.buffer(mine.transfer)});
}

void kv_serve_state::on_exported(const blocks_exported& x, kv_fetcher_effects& fx) {
  const auto at = servings_.find(x.number);
  auto& mine = at->second;
  fx.unpins.push_back({x.number});
  if (mine.unwanted) {
    end(at);
    return;
  }
  mine.at = stage::sending;
  answer(mine, true, fx, {}, x.checksum);
  mover_.send(mine.transfer, mine.rank, mine.wish.tag);
}

bool kv_serve_state::on_bulk(std::uint64_t transfer, kv_fetcher_effects& fx) {
  const auto number = by_transfer_.find(transfer);
  if (number == by_transfer_.end())
    return false;
  const auto at = servings_.find(number->second);
  auto& mine = at->second;
  const bulk_stage now = mover_.test(transfer);
  if (mine.at == stage::preparing && now == bulk_stage::ready) {
    ask_for_pin(at->first, mine, fx);
  } else if (mine.at == stage::sending && now != bulk_stage::moving) {
    if (now == bulk_stage::failed)
      answer(mine, false, fx);
    end(at);
  }
  return true;
}

void kv_serve_state::on_read(const kv_read& x, kv_fetcher_effects& fx) {
  const auto at = std::find_if(servings_.begin(), servings_.end(), [&](const auto& entry) {
    const auto& wish = entry.second.wish;
    return entry.second.at == stage::lent && wish.from == x.from && wish.fetch == x.fetch &&
           wish.first_block == x.first_block;
  });
  if (at == servings_.end())
    return;
  fx.unpins.push_back({at->first});
  end(at);
}

void kv_serve_state::on_replicas_lost(std::span<const replica_id> lost, kv_fetcher_effects& fx) {
  for (auto next = servings_.begin(); next != servings_.end();) {
    const auto at = next++;
    auto& mine = at->second;
    if (std::find(lost.begin(), lost.end(), mine.wish.from) == lost.end())
      continue;
    mine.unwanted = true;
    if (mine.at == stage::pinning || mine.at == stage::exporting)
      continue; // the answer ends it
    if (mine.at == stage::lent)
      fx.unpins.push_back({at->first});
    end(at);
  }
}

void kv_serve_state::end(serving_map::iterator at) {
  if (at->second.transfer != 0) {
    by_transfer_.erase(at->second.transfer);
    mover_.release(at->second.transfer);
  }
  servings_.erase(at);
}

} // namespace tokenrouter
