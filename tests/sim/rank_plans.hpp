#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include <caf/actor_system.hpp>

#include "launch/wire_up.hpp"
#include "tests/sim/scenario.hpp"

namespace tokenrouter::sim {

inline constexpr std::uint64_t peer_timeout_us = 500'000;

/// One rank: a system of its own with a virtual clock.
struct rank_world {
  reactor_config config{true};
  caf::actor_system system{config};
  std::unique_ptr<rank_actors> actors;
  reactor& loop() { return reactor::of(system); }
};

/// A look at the models of all ranks; filled as they load.
using shard_backends = std::map<shard_id, const scripted_backend*>;

/// What one rank of the scenario runs. Both arguments outlive its actors.
rank_plan plan_of(const scenario& s, rank_id self, shard_backends& all);

} // namespace tokenrouter::sim
