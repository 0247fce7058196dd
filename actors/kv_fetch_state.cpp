#include "actors/kv_fetch_state.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/policy/prefix_offers.hpp"

namespace tokenrouter {

namespace {

std::uint32_t have_blocks(const fetch_prefix& order) {
  return order.have_tokens / limits::block_tokens;
}

/// Of so many fetches that would be dearer than computing one is made: what they cost may change.
constexpr std::uint64_t dear_per_try = 32;

prefix_need need_of(const fetch_prefix& order, std::uint32_t min_tokens) {
  return {order.have_tokens, static_cast<std::uint32_t>(order.tokens.size()), min_tokens};
}

} // namespace

kv_fetch_state::kv_fetch_state(kv_fetcher_config config, std::function<std::uint64_t()> now_us)
    : config_(std::move(config)), now_us_(std::move(now_us)) {
  for (const auto& one : config_.siblings)
    siblings_[one.replica].rank = one.rank;
}

void kv_fetch_state::on_way(const kv_way& x, kv_fetcher_effects& fx) {
  const auto found = siblings_.find(x.sibling);
  if (found == siblings_.end() || x.from.index >= config_.shards)
    return;
  auto& one = found->second;
  if (!one.told.insert(x.from.index).second)
    return;
  one.alike = one.alike && x.alike;
  one.in_place = static_cast<std::uint16_t>(one.in_place + x.in_place);
  bytes_per_block_ = x.bytes_per_block;
  if (known(one))
    fx.ways.push_back({{x.sibling, one.rank}, one.alike, one.in_place});
}

bool kv_fetch_state::settled() const {
  return std::ranges::all_of(siblings_,
                             [this](const auto& x) { return x.second.lost || known(x.second); });
}

void kv_fetch_state::on_prefix(fetch_prefix&& x, kv_fetcher_effects& fx) {
  const auto at = fetches_.emplace(next_fetch_++, fetch{}).first;
  auto& mine = at->second;
  mine.order = std::move(x);
  if (lost_ || !worth_asking(need_of(mine.order, config_.min_tokens))) {
    end(at, fx);
    return;
  }
  for (const auto& [replica, one] : siblings_)
    if (of_use(one)) {
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
  if (config_.weighs_cost && !in_place(mine.source) &&
      !worth_sending(sent_cost_.us_per_token(), mine.order.computed_us_per_token) &&
      ++counters_.dear % dear_per_try != 0) {
    end(at, fx);
    return;
  }
  mine.began_us = now_us_();
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
  if (tokens < config_.min_tokens || lost_ || siblings_.at(mine.source).lost)
    mine.broken = true;
  pump(at, fx);
}

/// Makes as many pieces as may be under way; ends the fetch when there is nothing left to wait for.
void kv_fetch_state::pump(fetch_map::iterator at, kv_fetcher_effects& fx) {
  auto& mine = at->second;
  const auto per_piece = static_cast<std::uint32_t>(std::max<std::uint64_t>(
      1, (in_place(mine.source) ? config_.in_place_piece_bytes : config_.piece_bytes) /
             bytes_per_block_));
  while (!mine.broken && mine.next_block < mine.blocks.size() &&
         mine.pieces.size() < config_.pieces_max) {
    const std::uint32_t first = mine.next_block;
    auto& p = mine.pieces[first];
    p.block_count = std::min(per_piece, static_cast<std::uint32_t>(mine.blocks.size()) - first);
    mine.next_block += p.block_count;
    borrow(at->first, mine, first, p, fx);
  }
  if (mine.pieces.empty())
    end(at, fx);
}

void kv_fetch_state::borrow(std::uint64_t number, const fetch& f, std::uint32_t first,
                            const piece& p, kv_fetcher_effects& fx) const {
  const std::uint32_t first_block = have_blocks(f.order) + first;
  const auto end_tokens = std::size_t{first_block + p.block_count} * limits::block_tokens;
  fx.borrows.push_back(
      {config_.self,
       f.source,
       number,
       first_block,
       p.block_count,
       {f.order.tokens.begin(), f.order.tokens.begin() + static_cast<std::ptrdiff_t>(end_tokens)}});
}

void kv_fetch_state::on_loan(kv_loan&& x, kv_fetcher_effects& fx) {
  const auto at = fetches_.find(x.fetch);
  if (at == fetches_.end())
    return;
  auto& mine = at->second;
  const std::uint32_t first = x.first_block - have_blocks(mine.order);
  const auto found = mine.pieces.find(first);
  if (found == mine.pieces.end() || !found->second.unfilled.empty() || mine.source != x.from)
    return;
  auto& p = found->second;
  if (x.blocks.size() != p.block_count) {
    if (!x.blocks.empty())
      fx.returns.push_back({config_.self, x.from, x.fetch, x.first_block});
    fail_piece(at, first, fx);
    return;
  }
  std::vector<block_copy> copies;
  for (std::uint32_t i = 0; i < p.block_count; ++i)
    copies.push_back({x.blocks[i], mine.blocks[first + i]});
  for (std::uint16_t shard = 0; shard < config_.shards; ++shard) {
    p.unfilled.insert(shard);
    fx.fills.push_back({{config_.self, shard}, mine.source, x.fetch, first, copies});
  }
}

/// A piece is there when every shard has it.
void kv_fetch_state::on_filled(const kv_filled& x, kv_fetcher_effects& fx) {
  const auto at = fetches_.find(x.fetch);
  if (at == fetches_.end())
    return;
  auto& mine = at->second;
  const auto found = mine.pieces.find(x.first_block);
  if (found == mine.pieces.end() || found->second.unfilled.erase(x.from.index) == 0)
    return;
  auto& p = found->second;
  const auto& source = siblings_.at(mine.source);
  // The memory of a process that is gone holds anything; what was sent has its checksum.
  p.sound = p.sound && x.sound && !(source.lost && source.in_place > 0);
  if (!p.unfilled.empty())
    return;
  fx.returns.push_back(
      {config_.self, mine.source, x.fetch, have_blocks(mine.order) + x.first_block});
  if (!p.sound) {
    fail_piece(at, x.first_block, fx);
    return;
  }
  ++counters_.moved_pieces;
  mine.early.emplace(x.first_block, p.block_count);
  while (!mine.early.empty() && mine.early.begin()->first == mine.filled_blocks) {
    mine.filled_blocks += mine.early.begin()->second;
    mine.early.erase(mine.early.begin());
  }
  mine.pieces.erase(found);
  pump(at, fx);
}

/// What comes after it would leave a gap: no more pieces are made.
void kv_fetch_state::fail_piece(fetch_map::iterator at, std::uint32_t first,
                                kv_fetcher_effects& fx) {
  ++counters_.failed_pieces;
  at->second.broken = true;
  at->second.pieces.erase(first);
  pump(at, fx);
}

void kv_fetch_state::on_replicas_lost(std::span<const replica_id> lost, kv_fetcher_effects& fx) {
  lost_ = lost_ || std::ranges::find(lost, config_.self) != lost.end();
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
    if (mine.pieces.empty() || !(lost_ || siblings_.at(mine.source).lost))
      continue; // one that waits for its blocks learns of it with them
    mine.broken = true;
    // Shards at a piece tell of it; not all of them, where one of this replica is gone.
    counters_.failed_pieces += std::erase_if(
        mine.pieces, [&](const auto& p) { return lost_ || p.second.unfilled.empty(); });
    if (mine.pieces.empty())
      end(at, fx);
  }
}

void kv_fetch_state::end(fetch_map::iterator at, kv_fetcher_effects& fx) {
  auto& mine = at->second;
  const std::size_t tokens =
      std::size_t{have_blocks(mine.order) + mine.filled_blocks} * limits::block_tokens;
  check(tokens <= mine.order.tokens.size(), "no more is fetched than was asked for");
  if (mine.filled_blocks > 0 && !in_place(mine.source))
    sent_cost_.note(now_us_() - mine.began_us,
                    std::uint64_t{mine.filled_blocks} * limits::block_tokens);
  mine.order.tokens.resize(tokens);
  fx.joins.push_back({at->first, mine.order.request, mine.order.age, std::move(mine.order.tokens),
                      have_blocks(mine.order), mine.filled_blocks});
  fetches_.erase(at);
}

} // namespace tokenrouter
