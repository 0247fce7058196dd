#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>

#include "actors/local_messages.hpp"
#include "actors/model_kv.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/reactor/spinning_blocking_actor.hpp"

namespace tokenrouter {

/// A model as its scheduler sees it.
using model_actor = caf::typed_actor<caf::reacts_to<run_step>>;

/// A shard that does not lead, as the switchboard sees it.
using shard_actor = caf::typed_actor<caf::reacts_to<shard_invite>, ///< once, before it loads
                                     caf::reacts_to<shard_step>>;  ///< not answered

/// Where the leading shard's invitations go: the switchboard of its rank.
using invite_outlet = caf::typed_actor<caf::reacts_to<shard_invite>>;

/// What a model answers `run_step` with, to its sender.
using step_client = caf::typed_actor<caf::reacts_to<step_done>>;

/// What a model, or the copier beside it, answers its shard's mover with.
using kv_client =
    caf::typed_actor<caf::reacts_to<kv_facts>, caf::reacts_to<kv_reached>,
                     caf::reacts_to<blocks_exported>, caf::reacts_to<blocks_imported>>;

/// Loads a shard of a model; called once in the model's own thread.
using model_loader = std::function<result<std::unique_ptr<backend>>(const shard_group&)>;

/// Makes the id by which the shards of a replica meet; called once in the leading shard's thread.
using group_maker = std::function<result<std::vector<std::byte>>()>;

struct model_options {
  shard_id self;
  std::uint32_t kv_blocks = 0;
  std::vector<int> cores;    ///< where its threads run; empty: anywhere
  std::uint32_t spin_us = 0; ///< how long its thread looks at its mailbox before it sleeps
  model_loader load;
  shard_group group;      ///< its id is made, or comes with the invitation
  group_maker make_group; ///< of the leading shard of several
  invite_outlet outlet;   ///< likewise
  /// Of an inline model that leads others: whether they have run as many steps as it. On devices no
  /// step ends before, since all sum together.
  std::function<bool()> in_step;
};

/// What a model tells of itself once: `model_loaded` or `model_failed`.
using model_observer = caf::typed_actor<caf::reacts_to<model_loaded>, caf::reacts_to<model_failed>>;

/// Runs steps (`run_step`; of a shard that follows, `shard_step`), one at a time; the sole caller
/// of its backend but for a `kv_copier`, which it spawns when a mover asks for KV, and to which it
/// passes the mover on. Has a thread of its own, since loading takes long and must not hold up
/// heartbeats: spawn it `caf::detached`. Ends after a failed load or step.
class model final : public spinning_blocking_actor {
 public:
  model(caf::actor_config& config, model_options options, model_observer observer);
  void act() override;

 private:
  result<bool> meet();
  bool fails(const std::string& failure);

  model_options options_;
  model_observer observer_;
};

/// Loads in the caller's thread and reserves the KV pool.
result<std::unique_ptr<backend>> load_model(const model_options& options);

struct inline_model_state {
  std::unique_ptr<backend> device;
  std::function<bool()> in_step; ///< null: always
  std::optional<model_kv> kv;
  std::uint64_t moves = 0; ///< of KV so far; their durations vary with it
};

/// A model that runs in the reactor's thread and answers after the step's own `step_us`, or when
/// the other shards have run it, too: for simulation under virtual time.
caf::behavior inline_model(caf::stateful_actor<inline_model_state>* self,
                           const model_options& options, const model_observer& observer);

} // namespace tokenrouter
