#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/local_messages.hpp"
#include "actors/supervisor_state.hpp"

namespace tokenrouter {

/// Watches over one rank: when it is ready, when the job is over, when something it needs is gone.
using supervisor_actor =
    caf::typed_actor<caf::reacts_to<watch>,        ///< an actor of this rank
                     caf::reacts_to<model_loaded>, ///< one of this rank's models
                     caf::reacts_to<kv_settled>,   ///< one of this rank's fetchers
                     caf::reacts_to<model_failed>, ///< one of this rank's models
                     caf::reacts_to<rank_ready>,   ///< on rank 0: a rank is ready
                     caf::reacts_to<peer_down>,    ///< a link lost its peer
                     caf::reacts_to<peer_left>,    ///< a peer ended in order
                     caf::reacts_to<peer_lost>,    ///< on rank 0: a rank lost its peer
                     caf::reacts_to<rank_lost>,    ///< rank 0 goes on without a rank
                     caf::reacts_to<job_finished>, ///< the client wants nothing more
                     caf::reacts_to<end_job>>;     ///< another rank ends the job

/// Where a supervisor's messages to other ranks go: the switchboard of its rank.
using supervisor_outlet = caf::typed_actor<caf::reacts_to<rank_ready>, caf::reacts_to<peer_lost>,
                                           caf::reacts_to<rank_lost>, caf::reacts_to<replicas_lost>,
                                           caf::reacts_to<end_job>>;

/// Is told once that the whole job is ready: the gateway.
using readiness_client = caf::typed_actor<caf::reacts_to<open_gateway>>;

struct supervisor_options {
  supervisor_config config;
  supervisor_outlet outlet;
  readiness_client gateway; ///< null where no clients come in
  /// Called once, when this rank must stop.
  std::function<void(const job_end&)> on_end;
  /// Called on every rank when the job goes on without another; may be empty.
  std::function<void(const job_loss&)> on_loss;
  std::uint64_t loss_known_us = 0; ///< a rank that dies is known to be lost within that
  /// Called on rank 0 when every rank is ready; may be empty.
  std::function<void(const std::vector<replica_facts>&)> on_ready;
};

struct supervisor_box {
  supervisor_options options;
  std::optional<supervisor_state> core;
  std::unordered_map<caf::actor_id, watch> watched;
};

supervisor_actor::behavior_type supervisor(supervisor_actor::stateful_pointer<supervisor_box> self,
                                           supervisor_options options);

} // namespace tokenrouter
