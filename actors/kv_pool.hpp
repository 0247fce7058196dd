#pragma once

#include <cstdint>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/kv_local_messages.hpp"
#include "actors/local_messages.hpp"

namespace tokenrouter {

/// How full a pool is.
struct pool_facts {
  std::uint32_t total_blocks = 0;
  std::uint32_t free_blocks = 0;
  std::uint32_t cached_blocks = 0; ///< held as prefix cache alone: as good as free
  std::uint32_t parked_requests = 0;
};

/// Owns the blocks of one replica. One for each scheduler, on the same rank.
using kv_pool_actor =
    caf::typed_actor<caf::replies_to<lease>::with<lease_grant>,       ///< blocks for a planned step
                     caf::replies_to<prefix_query>::with<prefix_hit>, ///< a request begins
                     caf::reacts_to<remember_prefix>,                 ///< its KV may serve others
                     caf::reacts_to<park>,                            ///< the turn went to a peer
                     caf::reacts_to<give_back_blocks>,                ///< the request is over
                     caf::replies_to<prefix_peek>::with<prefix_known>,       ///< what is cached?
                     caf::replies_to<reserve_blocks>::with<blocks_reserved>, ///< for KV to come
                     caf::replies_to<join_blocks>::with<prefix_fetched>,     ///< that is here now
                     caf::replies_to<pin_blocks>::with<blocks_pinned>,  ///< for a sibling to read
                     caf::reacts_to<unpin_blocks>,                      ///< it has read them
                     caf::replies_to<caf::get_atom>::with<pool_facts>>; ///< how full it is

/// The scheduler as its pool sees it.
using lease_client = caf::typed_actor<caf::reacts_to<blocks_back>>;

struct kv_pool_state {
  block_ledger ledger{0};
  lease_client waiting; ///< for fewer loans; null: nobody is
};

kv_pool_actor::behavior_type kv_pool(kv_pool_actor::stateful_pointer<kv_pool_state> self,
                                     std::uint32_t blocks, bool keep_prefixes);

/// The answer to a lease, tables of the granted wants included.
lease_grant grant_lease(block_ledger& ledger, const lease& x);

} // namespace tokenrouter

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::pool_facts)
