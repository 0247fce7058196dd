#include "actors/kv_fetch_state.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/policy/prefix_offers.hpp"

namespace tokenrouter {

namespace {

std::uint32_t have_blocks(const fetch_prefix& order) {
  return order.have_tokens / limits::block_tokens;
}

prefix_need need_of(const fetch_prefix& order, std::uint32_t min_tokens) {
  return {order.have_tokens, static_cast<std::uint32_t>(order.tokens.size()), min_tokens};
}

} // namespace

kv_fetch_state::kv_fetch_state(kv_fetcher_config config, bulk_mover& mover,
                               bulk_mover::observer told)
    : config_(std::move(config)), mover_(mover), told_(std::move(told)) {
  for (const auto& one : config_.siblings)
    siblings_[one.replica].rank = one.rank;
}

void kv_fetch_state::on_facts(const kv_facts& x, kv_fetcher_effects& fx) {
  facts_ = x;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(x.address.data());
  for (auto& [replica, one] : siblings_) {
    fx.greetings.push_back({config_.self, replica, x.layout, {bytes, bytes + x.address.size()}});
    meet(replica, one, fx);
  }
}

void kv_fetch_state::on_greeting(kv_greeting&& x, kv_fetcher_effects& fx) {
  const auto found = siblings_.find(x.from);
  if (found == siblings_.end())
    return;
  auto& one = found->second;
  one.greeted = true;
  one.layout = x.layout;
  one.address = std::move(x.address);
  meet(x.from, one, fx);
}

/// Both are loaded: they may take KV from one another if it means the same to them.
void kv_fetch_state::meet(replica_id who, sibling& x, kv_fetcher_effects& fx) const {
  if (facts_.bytes_per_block == 0 || !x.greeted || x.way != reach::unknown)
    return;
  x.alike = x.layout == facts_.layout;
  if (!x.alike)
    return;
  x.way = x.address.empty() ? reach::by_bulk : reach::asked;
  if (x.way == reach::by_bulk) {
    fx.by_bulk.push_back({who, x.rank});
    return;
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(x.address.data());
  fx.reaches.push_back({who, {bytes, bytes + x.address.size()}});
}

void kv_fetch_state::on_reached(const kv_reached& x, kv_fetcher_effects& fx) {
  auto& one = siblings_.at(x.sibling);
  one.way = x.reached ? reach::in_place : reach::by_bulk;
  (x.reached ? fx.in_place : fx.by_bulk).push_back({x.sibling, one.rank});
}

bool kv_fetch_state::settled() const {
  return facts_.bytes_per_block > 0 && std::ranges::all_of(siblings_, [](const auto& x) {
           const sibling& one = x.second;
           const bool has_way = one.way == reach::in_place || one.way == reach::by_bulk;
           return one.lost || (one.greeted && (!one.alike || has_way));
         });
}

void kv_fetch_state::on_prefix(fetch_prefix&& x, kv_fetcher_effects& fx) {
  const auto at = fetches_.emplace(next_fetch_++, fetch{}).first;
  auto& mine = at->second;
  mine.order = std::move(x);
  if (!worth_asking(need_of(mine.order, config_.min_tokens))) {
    end(at, fx);
    return;
  }
  for (const auto& [replica, one] : siblings_)
    if (one.alike && !one.lost && (one.way == reach::in_place || one.way == reach::by_bulk)) {
      mine.unanswered.insert(replica);
      fx.asks.push_back({config_.self, replica, at->first, mine.order.tokens});
    }
  if (mine.unanswered.empty())
    end(at, fx);
  else
    ++counters_.asked;
}

void kv_fetch_state::on_offer(const prefix_offer& x, kv_fetcher_effects& fx) {
  const auto at = fetches_.find(x.fetch);
  if (at == fetches_.end() || at->second.unanswered.erase(x.from) == 0)
    return;
  at->second.bidders.push_back(x.from);
  at->second.bids_tokens.push_back(x.tokens);
  if (at->second.unanswered.empty())
    choose(at, fx);
}

/// Every sibling that lives has answered.
void kv_fetch_state::choose(fetch_map::iterator at, kv_fetcher_effects& fx) {
  auto& mine = at->second;
  const prefix_need need = need_of(mine.order, config_.min_tokens);
  const auto best = choose_offer(need, mine.bids_tokens);
  if (!best) {
    end(at, fx);
    return;
  }
  mine.source = mine.bidders[*best];
  const std::uint32_t tokens = std::min(mine.bids_tokens[*best], need.tokens_max);
  mine.order.tokens.resize(tokens - tokens % limits::block_tokens);
  const std::uint32_t count = blocks_for(tokens) - have_blocks(mine.order);
  fx.reserves.push_back({at->first, count});
}

void kv_fetch_state::on_reserved(blocks_reserved&& x, kv_fetcher_effects& fx) {
  const auto at = fetches_.find(x.fetch);
  auto& mine = at->second;
  mine.blocks = std::move(x.blocks);
  const std::size_t tokens = mine.blocks.size() * limits::block_tokens;
  mine.order.tokens.resize(mine.order.have_tokens + tokens);
  if (tokens < config_.min_tokens || siblings_.at(mine.source).lost)
    mine.broken = true;
  pump(at, fx);
}

/// Makes as many pieces as may be under way; ends the fetch when there is nothing left to wait for.
void kv_fetch_state::pump(fetch_map::iterator at, kv_fetcher_effects& fx) {
  auto& mine = at->second;
  const auto per_piece = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, config_.piece_bytes / facts_.bytes_per_block));
  const bool in_place = siblings_.at(mine.source).way == reach::in_place;
  while (!mine.broken && mine.next_block < mine.blocks.size() &&
         mine.pieces.size() < limits::fetch_pieces_max) {
    const std::uint32_t first = mine.next_block;
    auto& p = mine.pieces[first];
    p.block_count = std::min(per_piece, static_cast<std::uint32_t>(mine.blocks.size()) - first);
    mine.next_block += p.block_count;
    if (in_place) {
      p.at = piece_stage::asked;
      ask_for(at->first, mine, first, p, 0, fx);
    } else {
      p.transfer = mover_.prepare(bulk_way::in, p.block_count * facts_.bytes_per_block, told_);
      by_transfer_[p.transfer] = {at->first, first};
    }
  }
  if (mine.pieces.empty())
    end(at, fx);
}

void kv_fetch_state::ask_for(std::uint64_t number, const fetch& f, std::uint32_t first,
                             const piece& p, std::uint64_t tag, kv_fetcher_effects& fx) const {
  const std::uint32_t first_block = have_blocks(f.order) + first;
  const auto end_tokens = std::size_t{first_block + p.block_count} * limits::block_tokens;
  fx.fetches.push_back(
      {config_.self,
       f.source,
       number,
       first_block,
       p.block_count,
       tag,
       {f.order.tokens.begin(), f.order.tokens.begin() + static_cast<std::ptrdiff_t>(end_tokens)}});
}

bool kv_fetch_state::on_bulk(std::uint64_t transfer, kv_fetcher_effects& fx) {
  const auto found = by_transfer_.find(transfer);
  if (found == by_transfer_.end())
    return false;
  const place where = found->second;
  const auto at = fetches_.find(where.fetch);
  auto& mine = at->second;
  auto& p = mine.pieces.at(where.first);
  switch (mover_.test(transfer)) {
  case bulk_stage::ready: {
    if (p.at != piece_stage::waiting)
      break;
    p.at = piece_stage::asked;
    const std::uint64_t tag = mover_.new_tag();
    mover_.receive(transfer, siblings_.at(mine.source).rank, tag);
    ask_for(where.fetch, mine, where.first, p, tag, fx);
    break;
  }
  case bulk_stage::moved:
    import_if_here(where.fetch, mine, where.first, p, fx);
    break;
  case bulk_stage::failed:
    fail_piece(at, where.first, fx);
    break;
  case bulk_stage::queued:
  case bulk_stage::moving:
    break;
  }
  return true;
}

void kv_fetch_state::on_piece(kv_piece&& x, kv_fetcher_effects& fx) {
  const auto at = fetches_.find(x.fetch);
  if (at == fetches_.end())
    return;
  auto& mine = at->second;
  const std::uint32_t first = x.first_block - have_blocks(mine.order);
  const auto found = mine.pieces.find(first);
  if (found == mine.pieces.end() || found->second.at != piece_stage::asked || mine.source != x.from)
    return;
  auto& p = found->second;
  const bool fits = p.transfer != 0 ? x.blocks.empty() : x.blocks.size() == p.block_count;
  if (!x.given || !fits) {
    fail_piece(at, first, fx);
    return;
  }
  if (p.transfer != 0) {
    p.told = true;
    p.checksum = x.checksum;
    import_if_here(x.fetch, mine, first, p, fx);
    return;
  }
  p.at = piece_stage::importing;
  read_blocks order{x.fetch, first, mine.source, {}};
  for (std::uint32_t i = 0; i < p.block_count; ++i)
    order.copies.push_back({x.blocks[i], mine.blocks[first + i]});
  fx.direct_reads.push_back(std::move(order));
}

/// Data and word of it come in any order.
void kv_fetch_state::import_if_here(std::uint64_t number, const fetch& f, std::uint32_t first,
                                    piece& p, kv_fetcher_effects& fx) const {
  if (!p.told || p.at != piece_stage::asked || mover_.test(p.transfer) != bulk_stage::moved)
    return;
  p.at = piece_stage::importing;
  const auto from = f.blocks.begin() + first;
  fx.imports.push_back(
      {number, first, {from, from + p.block_count}, mover_.buffer(p.transfer), p.checksum});
}

void kv_fetch_state::on_imported(const blocks_imported& x, kv_fetcher_effects& fx) {
  const auto at = fetches_.find(x.fetch);
  auto& mine = at->second;
  const piece p = mine.pieces.at(x.first_block);
  if (p.transfer == 0)
    fx.reads.push_back(
        {config_.self, mine.source, x.fetch, have_blocks(mine.order) + x.first_block});
  if (!x.sound) {
    fail_piece(at, x.first_block, fx);
    return;
  }
  ++counters_.moved_pieces;
  mine.early.emplace(x.first_block, p.block_count);
  while (!mine.early.empty() && mine.early.begin()->first == mine.filled_blocks) {
    mine.filled_blocks += mine.early.begin()->second;
    mine.early.erase(mine.early.begin());
  }
  drop_piece(at, x.first_block);
  pump(at, fx);
}

void kv_fetch_state::drop_piece(fetch_map::iterator at, std::uint32_t first) {
  const auto found = at->second.pieces.find(first);
  if (const std::uint64_t transfer = found->second.transfer; transfer != 0) {
    by_transfer_.erase(transfer);
    mover_.release(transfer);
  }
  at->second.pieces.erase(found);
}

/// What comes after it would leave a gap: no more pieces are made.
void kv_fetch_state::fail_piece(fetch_map::iterator at, std::uint32_t first,
                                kv_fetcher_effects& fx) {
  ++counters_.failed_pieces;
  at->second.broken = true;
  drop_piece(at, first);
  pump(at, fx);
}

void kv_fetch_state::on_replicas_lost(std::span<const replica_id> lost, kv_fetcher_effects& fx) {
  for (const replica_id replica : lost)
    if (const auto found = siblings_.find(replica); found != siblings_.end())
      found->second.lost = true;
  for (auto next = fetches_.begin(); next != fetches_.end();) {
    const auto at = next++;
    auto& mine = at->second;
    if (!mine.unanswered.empty()) {
      for (const replica_id replica : lost)
        mine.unanswered.erase(replica);
      for (std::size_t i = 0; i < mine.bidders.size(); ++i)
        if (siblings_.at(mine.bidders[i]).lost)
          mine.bids_tokens[i] = 0;
      if (mine.unanswered.empty())
        choose(at, fx);
      continue;
    }
    if (mine.pieces.empty() || !siblings_.at(mine.source).lost)
      continue; // one that waits for its blocks learns of it with them
    mine.broken = true;
    std::vector<std::uint32_t> gone;
    for (const auto& [first, p] : mine.pieces)
      if (p.at != piece_stage::importing)
        gone.push_back(first);
    for (const std::uint32_t first : gone) {
      ++counters_.failed_pieces;
      drop_piece(at, first);
    }
    if (mine.pieces.empty())
      end(at, fx);
  }
}

void kv_fetch_state::end(fetch_map::iterator at, kv_fetcher_effects& fx) {
  auto& mine = at->second;
  const std::size_t tokens =
      std::size_t{have_blocks(mine.order) + mine.filled_blocks} * limits::block_tokens;
  check(tokens <= mine.order.tokens.size(), "no more is fetched than was asked for");
  mine.order.tokens.resize(tokens);
  fx.joins.push_back({at->first, mine.order.request, mine.order.age, std::move(mine.order.tokens),
                      have_blocks(mine.order), mine.filled_blocks});
  fetches_.erase(at);
}

} // namespace tokenrouter
