#include "actors/kv_serve_state.hpp"

#include <algorithm>

namespace tokenrouter {

kv_serve_state::kv_serve_state(kv_fetcher_config config) : config_(std::move(config)) {}

void kv_serve_state::on_ask(prefix_ask&& x, kv_fetcher_effects& fx) const {
  fx.peeks.push_back({x.from, x.fetch, std::move(x.tokens)});
}

void kv_serve_state::on_known(const prefix_known& x, kv_fetcher_effects& fx) const {
  fx.offers.push_back({config_.self, x.asker, x.fetch, x.tokens});
}

void kv_serve_state::on_borrow(kv_borrow&& x, kv_fetcher_effects& fx) {
  if (lost_.contains(x.from))
    return;
  const std::uint64_t number = next_number_++;
  loans_[number] = {x.from, x.fetch, x.first_block};
  fx.pins.push_back({number, std::move(x.tokens), x.first_block, x.block_count});
}

void kv_serve_state::on_pinned(blocks_pinned&& x, kv_fetcher_effects& fx) {
  const auto at = loans_.find(x.pin);
  auto& mine = at->second;
  const bool gone = x.blocks.empty();
  if (mine.unwanted) {
    if (!gone)
      fx.unpins.push_back({x.pin});
  } else {
    fx.loans.push_back(
        {config_.self, mine.reader, mine.fetch, mine.first_block, std::move(x.blocks)});
  }
  if (gone || mine.unwanted)
    loans_.erase(at);
  else
    mine.pinned = true;
}

void kv_serve_state::on_return(const kv_return& x, kv_fetcher_effects& fx) {
  const auto at = std::find_if(loans_.begin(), loans_.end(), [&](const auto& entry) {
    const loan& one = entry.second;
    return one.pinned && one.reader == x.from && one.fetch == x.fetch &&
           one.first_block == x.first_block;
  });
  if (at == loans_.end())
    return;
  fx.unpins.push_back({at->first});
  loans_.erase(at);
}

void kv_serve_state::on_replicas_lost(std::span<const replica_id> lost, kv_fetcher_effects& fx) {
  lost_.insert(lost.begin(), lost.end());
  if (lost_.contains(config_.self))
    for (const auto& one : config_.siblings)
      lost_.insert(one.replica);
  for (auto next = loans_.begin(); next != loans_.end();) {
    const auto at = next++;
    auto& mine = at->second;
    if (!lost_.contains(mine.reader))
      continue;
    mine.unwanted = true;
    if (!mine.pinned)
      continue; // the pool's answer ends it
    fx.unpins.push_back({at->first});
    loans_.erase(at);
  }
}

} // namespace tokenrouter
