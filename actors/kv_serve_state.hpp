#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "actors/kv_local_messages.hpp"
#include "runtime/transport/bulk_mover.hpp"

namespace tokenrouter {

struct kv_sibling {
  replica_id replica;
  rank_id rank;
};

struct kv_fetcher_config {
  replica_id self;
  std::vector<kv_sibling> siblings; ///< all other replicas of the model
  std::uint32_t min_tokens = 1;     ///< fewer are computed, not fetched
  std::size_t piece_bytes = limits::bulk_piece_bytes;
};

/// What a transition of a fetcher wants sent. The behaviour empties it.
struct kv_fetcher_effects {
  std::vector<kv_greeting> greetings;
  std::vector<prefix_ask> asks;
  std::vector<prefix_offer> offers;
  std::vector<kv_fetch> fetches;
  std::vector<kv_piece> pieces;
  std::vector<kv_read> reads;
  std::vector<prefix_peek> peeks;
  std::vector<reserve_blocks> reserves;
  std::vector<join_blocks> joins;
  std::vector<pin_blocks> pins;
  std::vector<unpin_blocks> unpins;
  std::vector<reach_pool> reaches;
  std::vector<export_blocks> exports;
  std::vector<import_blocks> imports;
  std::vector<read_blocks> direct_reads;
  std::vector<kv_sibling> in_place; ///< siblings whose pools turned out to be readable
  std::vector<kv_sibling> by_bulk;  ///< … and those from which KV is sent
};

/// The side of a fetcher that gives KV away: it pins a piece, lets its model write it to a buffer,
/// unpins it, and sends the buffer; or it pins the piece until the sibling has read it. Free of
/// CAF.
class kv_serve_state {
 public:
  /// The mover outlives this; `told` as in bulk_mover.
  kv_serve_state(kv_fetcher_config config, bulk_mover& mover, bulk_mover::observer told);

  /// The model is loaded; 0 before.
  void set_bytes_per_block(std::uint64_t bytes) { bytes_per_block_ = bytes; }

  void on_ask(prefix_ask&& x, kv_fetcher_effects& fx) const;
  void on_known(const prefix_known& x, kv_fetcher_effects& fx) const;
  void on_fetch(kv_fetch&& x, kv_fetcher_effects& fx);
  void on_pinned(blocks_pinned&& x, kv_fetcher_effects& fx);
  void on_exported(const blocks_exported& x, kv_fetcher_effects& fx);
  void on_read(const kv_read& x, kv_fetcher_effects& fx);

  /// False: the transfer is not one of these.
  bool on_bulk(std::uint64_t transfer, kv_fetcher_effects& fx);

  void on_replicas_lost(std::span<const replica_id> lost, kv_fetcher_effects& fx);

  std::size_t open() const { return servings_.size(); }

 private:
  enum class stage : std::uint8_t { preparing, pinning, exporting, sending, lent };

  struct serving {
    kv_fetch wish;
    rank_id rank;
    stage at = stage::preparing;
    std::uint64_t transfer = 0; ///< 0: it is read in place
    bool unwanted = false;      ///< its reader is lost
  };
  using serving_map = std::map<std::uint64_t, serving>;

  void ask_for_pin(std::uint64_t number, serving& x, kv_fetcher_effects& fx) const;
  void answer(const serving& x, bool given, kv_fetcher_effects& fx,
              std::vector<block_id> blocks = {}, std::uint32_t checksum = 0) const;
  void end(serving_map::iterator at);

  kv_fetcher_config config_;
  bulk_mover& mover_;
  bulk_mover::observer told_;
  std::uint64_t bytes_per_block_ = 0;
  serving_map servings_; ///< by number, which also names the pin and the export
  std::map<std::uint64_t, std::uint64_t> by_transfer_;
  std::uint64_t next_number_ = 1;
};

} // namespace tokenrouter
