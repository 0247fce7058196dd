#pragma once

#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/gateway.hpp"
#include "actors/kv_fetcher.hpp"
#include "actors/kv_mover.hpp"
#include "actors/link.hpp"
#include "actors/local_messages.hpp"
#include "actors/model.hpp"
#include "actors/planner.hpp"
#include "actors/scheduler.hpp"
#include "actors/supervisor.hpp"

namespace tokenrouter {

struct local_actors;

/// Knows which rank anything lives on; hands messages to actors of this rank or to the link of
/// another. CAF tries handlers in the order listed: the frequent ones come first.
using switchboard_actor =
    caf::typed_actor<caf::reacts_to<announce>,        ///< to the scheduler of `to`
                     caf::reacts_to<handoff>,         ///< to the scheduler of `to`
                     caf::reacts_to<wire_payload>,    ///< from a link: decoded and delivered here
                     caf::reacts_to<handoff_gap>,     ///< to the scheduler of `to`
                     caf::reacts_to<commit_batch>,    ///< to the gateway of `home`
                     caf::reacts_to<request_failed>,  ///< to the gateway of the request's home
                     caf::reacts_to<recall>,          ///< to the scheduler of `to`
                     caf::reacts_to<release>,         ///< to the scheduler of `to`
                     caf::reacts_to<released>,        ///< to the gateway of the request's home
                     caf::reacts_to<replica_report>,  ///< to the planner
                     caf::reacts_to<batching_update>, ///< to the scheduler of `to`
                     caf::reacts_to<status_query>,    ///< to the scheduler of `to`
                     caf::reacts_to<replica_status>,  ///< to the gateway of `home`
                     caf::reacts_to<rank_ready>,      ///< to the supervisor of rank 0
                     caf::reacts_to<peer_lost>,       ///< to the supervisor of rank 0
                     caf::reacts_to<rank_lost>,       ///< to the supervisor of `to`
                     caf::reacts_to<replicas_lost>,   ///< to all here whom it concerns
                     caf::reacts_to<end_job>,         ///< to the supervisor of `to`
                     caf::reacts_to<shard_step>,      ///< to the shard `to`
                     caf::reacts_to<shard_invite>,    ///< to the shard `to`
                     caf::reacts_to<shard_awake>,     ///< to the rank of the shard `to`
                     caf::reacts_to<prefix_ask>,      ///< to the fetcher of `to`
                     caf::reacts_to<prefix_offer>,    ///< to the fetcher of `to`
                     caf::reacts_to<kv_borrow>,       ///< to the fetcher of `to`
                     caf::reacts_to<kv_loan>,         ///< to the fetcher of `to`
                     caf::reacts_to<kv_return>,       ///< to the fetcher of `to`
                     caf::reacts_to<kv_fill>,         ///< to the mover of `to`
                     caf::reacts_to<kv_filled>,       ///< to the fetcher of `to`
                     caf::reacts_to<kv_wish>,         ///< to the mover of `to`
                     caf::reacts_to<kv_parcel>,       ///< to the mover of `to`
                     caf::reacts_to<kv_greeting>,     ///< to the mover of `to`
                     caf::reacts_to<kv_way>,          ///< to the fetcher of `to`
                     caf::reacts_to<peer_left>,     ///< from a link, behind the peer's last message
                     caf::reacts_to<local_actors>>; ///< once, at wire-up

/// Handles of this rank's actors, told once after all are spawned.
struct local_actors {
  std::unordered_map<replica_id, scheduler_actor> schedulers;
  std::unordered_map<replica_id, kv_fetcher_actor> fetchers; ///< of those that exchange KV
  std::map<shard_id, kv_mover_actor> movers;                 ///< of the shards of such replicas
  std::map<shard_id, shard_actor> shards;                    ///< those that do not lead
  gateway_actor gateway;                                     ///< null where no clients come in
  supervisor_actor supervisor;
  planner_actor planner; ///< null where no thresholds are set while the job runs
  std::map<rank_id, link_actor> links;
};

struct switchboard_options {
  rank_id self;
  std::unordered_map<replica_id, rank_id> placement; ///< of every replica of the job
  std::map<shard_id, rank_id> shards;                ///< … and of every shard that does not lead
  std::function<void(bool)> shard_awake;             ///< steps may come for one here, or not now
};

struct switchboard_box {
  switchboard_options options;
  local_actors local;
  std::set<rank_id> lost;          ///< nothing goes there or is taken from there any more
  std::uint64_t undeliverable = 0; ///< messages for what is not here, or that did not decode
};

switchboard_actor::behavior_type
switchboard(switchboard_actor::stateful_pointer<switchboard_box> self, switchboard_options options);

} // namespace tokenrouter

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::local_actors)
