#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/kv_fetcher.hpp"
#include "actors/kv_pool.hpp"
#include "actors/local_messages.hpp"
#include "actors/model.hpp"
#include "actors/scheduler_state.hpp"
#include "actors/tracer.hpp"

namespace tokenrouter {

/// Leads one replica: forms its steps, routes what they propose, passes turns on.
using scheduler_actor = caf::typed_actor<caf::reacts_to<announce>,        ///< a request lives
                                         caf::reacts_to<handoff>,         ///< the turn comes here
                                         caf::reacts_to<handoff_gap>,     ///< a peer lacks tokens
                                         caf::reacts_to<recall>,          ///< turns are void
                                         caf::reacts_to<release>,         ///< a request is over
                                         caf::reacts_to<replicas_lost>,   ///< of any model
                                         caf::reacts_to<batching_update>, ///< new thresholds
                                         caf::reacts_to<prefix_hit>,      ///< cached KV it has
                                         caf::reacts_to<prefix_fetched>,  ///< … from a sibling
                                         caf::reacts_to<blocks_back>,     ///< a loan has ended
                                         caf::reacts_to<step_done>,       ///< the model's answer
                                         caf::reacts_to<status_query>,    ///< how is it?
                                         caf::reacts_to<caf::tick_atom>>; ///< form a step

/// Where a scheduler's messages go: the switchboard of its rank.
using scheduler_outlet = caf::typed_actor<
    caf::reacts_to<handoff>, caf::reacts_to<handoff_gap>, caf::reacts_to<commit_batch>,
    caf::reacts_to<request_failed>, caf::reacts_to<released>, caf::reacts_to<replica_report>,
    caf::reacts_to<shard_step>, caf::reacts_to<shard_awake>, caf::reacts_to<replica_status>>;

struct scheduler_options {
  scheduler_config config;
  std::function<std::unique_ptr<const method_role>()> make_role;
  scheduler_outlet outlet;
  kv_pool_actor pool;
  model_actor model;
  kv_fetcher_actor fetcher; ///< null: nothing is fetched
  std::uint16_t shards = 1; ///< that run each step together; `model` leads them
  tracer_actor tracer;      ///< null: no trace
  std::function<std::uint64_t()> now_us;
  /// Called with true when the first request gets here, with false when the last one has left.
  std::function<void(bool)> in_flight;
};

struct scheduler_box {
  std::optional<scheduler_state> core;
  scheduler_options options;
  scheduler_effects effects;
  std::shared_ptr<step_work> work; ///< null while a step is under way
  std::uint64_t step_sent_us = 0;  ///< of the last one
  bool tick_sent = false;
  bool leasing = false;
  std::uint64_t timer_us = 0; ///< when a delayed step is tried again; 0: no timer
  bool busy = false;
};

scheduler_actor::behavior_type scheduler(scheduler_actor::stateful_pointer<scheduler_box> self,
                                         scheduler_options options);

} // namespace tokenrouter
