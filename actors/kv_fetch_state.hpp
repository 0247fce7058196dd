#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "actors/kv_serve_state.hpp"

namespace tokenrouter {

/// Counts since the start.
struct kv_fetch_counters {
  std::uint64_t asked = 0;         ///< fetches that asked siblings
  std::uint64_t moved_pieces = 0;  ///< that arrived and were sound
  std::uint64_t failed_pieces = 0; ///< gone, damaged, or of a lost sibling
};

/// The side of a fetcher that takes KV from siblings. A fetch asks all siblings what they have,
/// chooses one, sets blocks of the own pool aside, has the missing blocks moved piece by piece, and
/// ends with what arrived without a gap; each fetch ends exactly once, with a `join_blocks`. Where
/// anything goes wrong, that is less, or nothing. Free of CAF.
class kv_fetch_state {
 public:
  kv_fetch_state(kv_fetcher_config config, bulk_mover& mover, bulk_mover::observer told);

  void on_facts(const kv_facts& x, kv_fetcher_effects& fx);
  void on_greeting(kv_greeting&& x, kv_fetcher_effects& fx);
  void on_reached(const kv_reached& x, kv_fetcher_effects& fx);
  void on_prefix(fetch_prefix&& x, kv_fetcher_effects& fx);
  void on_offer(const prefix_offer& x, kv_fetcher_effects& fx);
  void on_reserved(blocks_reserved&& x, kv_fetcher_effects& fx);
  void on_piece(kv_piece&& x, kv_fetcher_effects& fx);
  void on_imported(const blocks_imported& x, kv_fetcher_effects& fx);

  /// False: the transfer is not one of these.
  bool on_bulk(std::uint64_t transfer, kv_fetcher_effects& fx);

  /// Nothing more comes from these; they are asked for nothing any more.
  void on_replicas_lost(std::span<const replica_id> lost, kv_fetcher_effects& fx);

  /// Every sibling is known: the way to its KV, or that it has none that means the same, or that it
  /// is lost.
  bool settled() const;

  std::size_t open() const { return fetches_.size(); }
  const kv_fetch_counters& counters() const { return counters_; }

 private:
  enum class reach : std::uint8_t { unknown, asked, in_place, by_bulk };

  struct sibling {
    rank_id rank;
    bool alike = false; ///< it is loaded and has the same layout
    bool lost = false;
    reach way = reach::unknown;
    std::vector<std::uint8_t> address;
    std::uint64_t layout = 0;
    bool greeted = false;
  };

  /// `asked` until the piece is sent or lent; then its import is under way.
  enum class piece_stage : std::uint8_t { waiting, asked, importing };

  struct piece {
    std::uint32_t block_count = 0;
    piece_stage at = piece_stage::waiting;
    std::uint64_t transfer = 0; ///< 0: it is read in place
    bool told = false;          ///< its kv_piece came
    std::uint32_t checksum = 0;
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
  };
  using fetch_map = std::map<std::uint64_t, fetch>;

  void meet(replica_id who, sibling& x, kv_fetcher_effects& fx) const;
  void choose(fetch_map::iterator at, kv_fetcher_effects& fx);
  void pump(fetch_map::iterator at, kv_fetcher_effects& fx);
  void ask_for(std::uint64_t number, const fetch& f, std::uint32_t first, const piece& p,
               std::uint64_t tag, kv_fetcher_effects& fx) const;
  void import_if_here(std::uint64_t number, const fetch& f, std::uint32_t first, piece& p,
                      kv_fetcher_effects& fx) const;
  void drop_piece(fetch_map::iterator at, std::uint32_t first);
  void fail_piece(fetch_map::iterator at, std::uint32_t first, kv_fetcher_effects& fx);
  void end(fetch_map::iterator at, kv_fetcher_effects& fx);

  kv_fetcher_config config_;
  bulk_mover& mover_;
  bulk_mover::observer told_;
  std::map<replica_id, sibling> siblings_;
  kv_facts facts_; ///< bytes_per_block 0: the model is not loaded yet
  fetch_map fetches_;
  struct place {
    std::uint64_t fetch = 0;
    std::uint32_t first = 0;
  };
  std::map<std::uint64_t, place> by_transfer_;
  std::uint64_t next_fetch_ = 1;
  kv_fetch_counters counters_;
};

} // namespace tokenrouter
