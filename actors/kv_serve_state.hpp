#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "actors/kv_local_messages.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

struct kv_sibling {
  replica_id replica;
  rank_id rank;
};

struct kv_fetcher_config {
  replica_id self;
  std::uint16_t shards = 1;         ///< of every replica of the model, each with a mover
  std::vector<kv_sibling> siblings; ///< all other replicas of the model, where their fetchers are
  std::uint32_t min_tokens = 1;     ///< fewer are computed, not fetched
  std::size_t piece_bytes = limits::bulk_piece_bytes; ///< of each shard, where KV is sent
  std::size_t in_place_piece_bytes = limits::in_place_piece_bytes; ///< … and where all read it
  std::size_t pieces_max = limits::fetch_pieces_max; ///< of one fetch that are under way
  bool weighs_cost = true;                           ///< nothing is sent that is computed sooner
};

/// How a replica's KV comes, once every mover has told.
struct kv_ways {
  kv_sibling from;
  bool alike = true;          ///< false: it comes not at all
  std::uint16_t in_place = 0; ///< shards that read it themselves
};

/// What a transition of a fetcher wants sent. The behaviour empties it.
struct kv_fetcher_effects {
  std::vector<prefix_ask> asks;
  std::vector<prefix_offer> offers;
  std::vector<kv_borrow> borrows;
  std::vector<kv_loan> loans;
  std::vector<kv_return> returns;
  std::vector<kv_fill> fills;
  std::vector<prefix_peek> peeks;
  std::vector<reserve_blocks> reserves;
  std::vector<join_blocks> joins;
  std::vector<pin_blocks> pins;
  std::vector<unpin_blocks> unpins;
  std::vector<kv_ways> ways; ///< to be shown
};

/// The side of a fetcher that lends blocks to siblings: it pins a piece until it comes back. Free
/// of CAF.
class kv_serve_state {
 public:
  explicit kv_serve_state(kv_fetcher_config config);

  void on_ask(prefix_ask&& x, kv_fetcher_effects& fx) const;
  void on_known(const prefix_known& x, kv_fetcher_effects& fx) const;
  void on_borrow(kv_borrow&& x, kv_fetcher_effects& fx);
  void on_pinned(blocks_pinned&& x, kv_fetcher_effects& fx);
  void on_return(const kv_return& x, kv_fetcher_effects& fx);

  /// Nothing is lent to these any more; to none, if this replica is one of them.
  void on_replicas_lost(std::span<const replica_id> lost, kv_fetcher_effects& fx);

  std::size_t open() const { return loans_.size(); }

 private:
  struct loan {
    replica_id reader;
    std::uint64_t fetch = 0;
    std::uint32_t first_block = 0;
    bool pinned = false;
    bool unwanted = false; ///< its reader is lost
  };

  kv_fetcher_config config_;
  std::set<replica_id> lost_;
  std::map<std::uint64_t, loan> loans_; ///< by number, which also names the pin
  std::uint64_t next_number_ = 1;
};

} // namespace tokenrouter
