#pragma once

#include <caf/blocking_actor.hpp>

#include "actors/model_kv.hpp"

namespace tokenrouter {

/// Does for a shard's mover what concerns the KV pool of its model, beside the model's steps.
/// Spawned by the model, which waits for its end before it lets go of the backend. Has a thread of
/// its own: spawn it `caf::detached`.
class kv_copier final : public caf::blocking_actor {
 public:
  /// The backend outlives this.
  kv_copier(caf::actor_config& config, backend* device);
  void act() override;

 private:
  model_kv kv_;
};

} // namespace tokenrouter
