#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <caf/typed_event_based_actor.hpp>

#include "actors/gateway.hpp"

namespace tokenrouter::sim {

/// All that one client was told.
struct client_log {
  std::map<std::uint64_t, request_done> done;
  std::map<std::uint64_t, std::vector<commit>> streamed;
  std::map<std::uint64_t, std::vector<std::vector<scored_token_info>>> prompts;
  std::uint64_t answers_twice = 0;
};

struct client_box {
  client_log* log = nullptr;
};

using client_actor = request_client::extend<caf::reacts_to<submit>, caf::reacts_to<cancel>>;

/// Passes orders on to the gateway and notes the answers. The log outlives it.
client_actor::behavior_type client(client_actor::stateful_pointer<client_box> self, client_log* log,
                                   gateway_actor gateway);

} // namespace tokenrouter::sim
