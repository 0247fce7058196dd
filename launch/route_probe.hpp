#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/ids.hpp"
#include "runtime/transport/transport.hpp"

namespace tokenrouter {

/// How frames get from one rank to another.
struct peer_route {
  std::string carrier;   ///< as the transport describes it; empty for the rank itself
  float one_way_us = -1; ///< half of the quickest round trip of a small frame; -1: not measured

  template <class Inspector>
  friend auto inspect(Inspector& f, peer_route& x) {
    return f(x.carrier, x.one_way_us);
  }
};

/// Most ranks between which latencies are measured: each rank asks each.
inline constexpr std::uint32_t probed_ranks_max = 64;

/// Measures the way to every peer, by rank. Collective: all ranks call it at about the same time,
/// connected and before any other frame; it ends when all are done or after `deadline_ms`, and then
/// nobody listens to the transport.
std::vector<peer_route> probe_routes(transport& wire, rank_id self, std::uint32_t ranks,
                                     std::uint32_t deadline_ms);

} // namespace tokenrouter
