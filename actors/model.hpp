#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>

#include "actors/local_messages.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/reactor/spinning_blocking_actor.hpp"

namespace tokenrouter {

/// A model as its scheduler sees it.
using model_actor = caf::typed_actor<caf::reacts_to<run_step>>;

/// What a model answers `run_step` with, to its sender.
using step_client = caf::typed_actor<caf::reacts_to<step_done>>;

struct model_options {
  replica_id replica;
  std::uint32_t kv_blocks = 0;
  std::vector<int> cores;    ///< where its threads run; empty: anywhere
  std::uint32_t spin_us = 0; ///< how long its thread looks at its mailbox before it sleeps
  /// Called once in the model's own thread: loading takes long and must not hold up heartbeats.
  std::function<result<std::unique_ptr<backend>>()> load;
};

/// What a model tells of itself once: `model_loaded` or `model_failed`.
using model_observer = caf::typed_actor<caf::reacts_to<model_loaded>, caf::reacts_to<model_failed>>;

/// Runs steps (`run_step`), one at a time; the sole caller of its backend. Has a thread of its own:
/// spawn it `caf::detached`. Ends after a failed load.
class model final : public spinning_blocking_actor {
 public:
  model(caf::actor_config& config, model_options options, model_observer observer);
  void act() override;

 private:
  model_options options_;
  model_observer observer_;
};

/// Loads in the caller's thread and reserves the KV pool.
result<std::unique_ptr<backend>> load_model(const model_options& options);

struct inline_model_state {
  std::unique_ptr<backend> device;
};

/// A model that runs in the reactor's thread and answers after the step's own `step_us`: for
/// simulation under virtual time.
caf::behavior inline_model(caf::stateful_actor<inline_model_state>* self,
                           const model_options& options, const model_observer& observer);

} // namespace tokenrouter
