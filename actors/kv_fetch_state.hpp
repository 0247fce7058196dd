#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "actors/kv_serve_state.hpp"
#include "runtime/policy/fetch_cost.hpp"

namespace tokenrouter {

/// Counts since the start.
struct kv_fetch_counters {
  std::uint64_t asked = 0;         ///< fetches that asked siblings
  std::uint64_t moved_pieces = 0;  ///< that arrived and were sound
  std::uint64_t failed_pieces = 0; ///< gone, damaged, or of a lost sibling
  std::uint64_t dear = 0;          ///< fetches that were left, since computing is cheaper
};

/// The side of a fetcher that takes KV from siblings. A fetch asks all siblings what they have,
/// chooses one, sets blocks of the own pool aside, borrows the missing ones piece by piece and has
/// the movers of all shards fill its own from them. It ends with what arrived on every shard
/// without a gap; each fetch ends exactly once, with a `join_blocks`. Where anything goes wrong,
/// that is less, or nothing. Free of CAF.
class kv_fetch_state {
 public:
  /// `now_us`: any clock that goes on.
  kv_fetch_state(kv_fetcher_config config, std::function<std::uint64_t()> now_us);

  void on_way(const kv_way& x, kv_fetcher_effects& fx);
  void on_prefix(fetch_prefix&& x, kv_fetcher_effects& fx);
  void on_offer(const prefix_offer& x, kv_fetcher_effects& fx);
  void on_reserved(blocks_reserved&& x, kv_fetcher_effects& fx);
  void on_loan(kv_loan&& x, kv_fetcher_effects& fx);
  void on_filled(const kv_filled& x, kv_fetcher_effects& fx);

  /// Nothing more comes from these; they are asked for nothing any more. If this replica is one of
  /// them, its shards are waited for no longer.
  void on_replicas_lost(std::span<const replica_id> lost, kv_fetcher_effects& fx);

  /// Every sibling is known: how its KV comes, or that it does not, or that it is lost.
  bool settled() const;

  std::size_t open() const { return fetches_.size(); }
  const kv_fetch_counters& counters() const { return counters_; }

 private:
  struct sibling {
    rank_id rank;
    bool lost = false;
    bool alike = true;              ///< to all shards that told
    std::uint16_t in_place = 0;     ///< shards that read it themselves
    std::set<std::uint16_t> told{}; ///< shards that know their way
  };

  struct piece {
    std::uint32_t block_count = 0;
    bool sound = true;
    std::set<std::uint16_t> unfilled{}; ///< shards at it; none: it is being borrowed
  };

  struct fetch {
    fetch_prefix order;
    std::set<replica_id> unanswered;
    std::vector<replica_id> bidders;
    std::vector<std::uint32_t> bids_tokens;
    replica_id source;
    std::vector<block_id> blocks;    ///< reserved; of the positions after those it has
    std::uint32_t next_block = 0;    ///< of `blocks`: first that no piece has been made for
    std::uint32_t filled_blocks = 0; ///< … first that is not filled, all before it are
    std::map<std::uint32_t, std::uint32_t> early; ///< filled out of order: first and count
    std::map<std::uint32_t, piece> pieces;        ///< under way, by first of `blocks`
    bool broken = false;                          ///< no more pieces
    std::uint64_t began_us = 0;                   ///< when its source was chosen
  };
  using fetch_map = std::map<std::uint64_t, fetch>;

  bool known(const sibling& x) const { return x.told.size() == config_.shards; }
  bool of_use(const sibling& x) const { return known(x) && x.alike && !x.lost; }
  void choose(fetch_map::iterator at, kv_fetcher_effects& fx);
  void pump(fetch_map::iterator at, kv_fetcher_effects& fx);
  void borrow(std::uint64_t number, const fetch& f, std::uint32_t first, const piece& p,
              kv_fetcher_effects& fx) const;
  void fail_piece(fetch_map::iterator at, std::uint32_t first, kv_fetcher_effects& fx);
  void end(fetch_map::iterator at, kv_fetcher_effects& fx);

  bool in_place(replica_id source) const { return siblings_.at(source).in_place == config_.shards; }

  kv_fetcher_config config_;
  std::function<std::uint64_t()> now_us_;
  token_cost sent_cost_; ///< of fetches whose KV was sent
  std::map<replica_id, sibling> siblings_;
  std::uint64_t bytes_per_block_ = 0; ///< of a shard
  bool lost_ = false;                 ///< this replica is
  fetch_map fetches_;
  std::uint64_t next_fetch_ = 1;
  kv_fetch_counters counters_;
};

} // namespace tokenrouter
