#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "actors/kv_local_messages.hpp"
#include "runtime/transport/bulk_mover.hpp"

namespace tokenrouter {

struct kv_mover_config {
  shard_id self;
  std::map<replica_id, rank_id> siblings{}; ///< where the shard of the same number of each is
  std::uint32_t kv_blocks = 0;              ///< of the own pool; a sibling's may differ
  bool reads_in_place = true;               ///< where it can; all of a model alike
};

/// What a transition of a mover wants sent. The behaviour empties it.
struct kv_mover_effects {
  std::vector<kv_greeting> greetings;
  std::vector<kv_way> ways;
  std::vector<kv_filled> filled;
  std::vector<kv_wish> wishes;
  std::vector<kv_parcel> parcels;
  std::vector<reach_pool> reaches;
  std::vector<export_blocks> exports;
  std::vector<import_blocks> imports;
  std::vector<read_blocks> direct_reads;
};

/// Moves KV between one shard and the shards of the same number of its replica's siblings: has its
/// model read a sibling's pool in place where that can be done, else wishes for the blocks, which
/// the other mover has exported to a buffer and sends. Whoever orders keeps the blocks as they are
/// meanwhile, on both sides. Every order is answered once. Free of CAF.
class kv_mover_state {
 public:
  /// The mover outlives this; `told` as in bulk_mover.
  kv_mover_state(kv_mover_config config, bulk_mover& mover, bulk_mover::observer told);

  void on_facts(const kv_facts& x, kv_mover_effects& fx);
  void on_greeting(kv_greeting&& x, kv_mover_effects& fx);
  void on_reached(const kv_reached& x, kv_mover_effects& fx);

  void on_fill(kv_fill&& x, kv_mover_effects& fx);
  void on_parcel(const kv_parcel& x, kv_mover_effects& fx);
  void on_imported(const blocks_imported& x, kv_mover_effects& fx);

  void on_wish(kv_wish&& x, kv_mover_effects& fx);
  void on_exported(const blocks_exported& x, kv_mover_effects& fx);

  void on_bulk(std::uint64_t transfer, kv_mover_effects& fx);

  /// Nothing more goes to these or comes from there. If this replica is one of them, that is all.
  void on_replicas_lost(std::span<const replica_id> lost, kv_mover_effects& fx);

  /// Orders and wishes under way.
  std::size_t open() const { return fills_.size() + gifts_.size(); }

 private:
  enum class reach : std::uint8_t { unknown, asked, in_place, by_bulk, not_alike };

  struct sibling {
    rank_id rank;
    reach way = reach::unknown;
    bool greeted = false;
    bool lost = false;
    std::vector<std::uint8_t> address;
    std::uint64_t layout = 0;
  };

  enum class fill_stage : std::uint8_t { waiting, wished, importing };

  struct fill {
    kv_fill order;
    fill_stage at = fill_stage::waiting;
    std::uint64_t transfer = 0; ///< 0: it is read in place
    bool told = false;          ///< its parcel was sent
    std::uint32_t checksum = 0;
  };
  using fill_map = std::map<std::uint64_t, fill>;

  enum class gift_stage : std::uint8_t { waiting, exporting, sending };

  struct gift {
    kv_wish wish;
    gift_stage at = gift_stage::waiting;
    std::uint64_t transfer = 0;
    bool unwanted = false; ///< its reader is lost
  };
  using gift_map = std::map<std::uint64_t, gift>;

  void meet(replica_id who, sibling& x, kv_mover_effects& fx) const;
  void settle(replica_id who, sibling& x, reach way, kv_mover_effects& fx) const;
  void move_fill(fill_map::iterator at, kv_mover_effects& fx);
  void move_gift(gift_map::iterator at, kv_mover_effects& fx);
  void import_if_here(std::uint64_t number, fill& x, kv_mover_effects& fx) const;
  void answer(const kv_fill& order, bool sound, kv_mover_effects& fx) const;
  void answer(const kv_wish& wish, bool sent, std::uint32_t checksum, kv_mover_effects& fx) const;
  void end(fill_map::iterator at, bool sound, kv_mover_effects& fx);
  void end(gift_map::iterator at);
  bool known(std::span<const block_id> blocks) const;

  kv_mover_config config_;
  bulk_mover& mover_;
  bulk_mover::observer told_;
  std::map<replica_id, sibling> siblings_;
  kv_facts facts_; ///< bytes_per_block 0: the model is not loaded yet
  fill_map fills_;
  gift_map gifts_;
  std::map<std::uint64_t, std::uint64_t> fill_of_; ///< by transfer
  std::map<std::uint64_t, std::uint64_t> gift_of_; ///< …
  std::uint64_t next_number_ = 1;
};

} // namespace tokenrouter
