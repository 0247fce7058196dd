#pragma once

#include <optional>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/local_messages.hpp"
#include "actors/planner_state.hpp"

namespace tokenrouter {

/// Sets batching thresholds while the job runs, from what replicas measure. One for the job, on
/// rank 0, with a thread of its own (spawn it `caf::detached`): a plan may take a second.
using planner_actor = caf::typed_actor<caf::reacts_to<replica_report>, ///< what a replica measured
                                       caf::reacts_to<replicas_lost>>; ///< they get no updates

/// Where its decisions go: the switchboard of its rank.
using planner_outlet = caf::typed_actor<caf::reacts_to<batching_update>>;

struct planner_options {
  planner_config config;
  std::vector<replica_id> replicas; ///< all of the job
  planner_outlet outlet;
};

struct planner_box {
  std::optional<planner_state> core;
  planner_options options;
};

planner_actor::behavior_type planner(planner_actor::stateful_pointer<planner_box> self,
                                     planner_options options);

} // namespace tokenrouter
