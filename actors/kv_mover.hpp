#pragma once

#include <optional>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/kv_mover_state.hpp"
#include "actors/local_messages.hpp"

namespace tokenrouter {

/// Moves KV between one shard and its siblings' pools, as the fetcher of its replica orders.
using kv_mover_actor =
    caf::typed_actor<caf::reacts_to<kv_greeting>,     ///< a sibling is loaded
                     caf::reacts_to<kv_fill>,         ///< the fetcher wants blocks filled
                     caf::reacts_to<kv_wish>,         ///< a sibling wants blocks
                     caf::reacts_to<kv_parcel>,       ///< a sibling sent blocks
                     caf::reacts_to<kv_facts>,        ///< the model's answers …
                     caf::reacts_to<kv_reached>,      ///< …
                     caf::reacts_to<blocks_exported>, ///< …
                     caf::reacts_to<blocks_imported>, ///< …
                     caf::reacts_to<bulk_news>,       ///< a transfer is ready, or over
                     caf::reacts_to<replicas_lost>>;  ///< some siblings are gone

/// Where a mover's messages to fetcher and siblings go: the switchboard of its rank.
using kv_mover_outlet =
    caf::typed_actor<caf::reacts_to<kv_greeting>, caf::reacts_to<kv_way>, caf::reacts_to<kv_filled>,
                     caf::reacts_to<kv_wish>, caf::reacts_to<kv_parcel>>;

/// What a mover asks of its shard's model, and of whoever answers that.
using kv_host_actor = caf::typed_actor<caf::reacts_to<ask_kv>>;
using kv_copier_actor =
    caf::typed_actor<caf::reacts_to<reach_pool>, caf::reacts_to<export_blocks>,
                     caf::reacts_to<import_blocks>, caf::reacts_to<read_blocks>>;

struct kv_mover_options {
  kv_mover_config config;
  kv_mover_outlet outlet;
  kv_host_actor model;
  bulk_mover* mover = nullptr; ///< of this rank; outlives the actor
};

struct kv_mover_box {
  kv_mover_options options;
  std::optional<kv_mover_state> state;
  kv_mover_effects effects;
  kv_copier_actor copier; ///< who answered for the model; null: nobody yet
};

kv_mover_actor::behavior_type kv_mover(kv_mover_actor::stateful_pointer<kv_mover_box> self,
                                       kv_mover_options options);

} // namespace tokenrouter
