#pragma once

#include <functional>

#include "runtime/transport/bootstrap.hpp"
#include "tests/bench/handoff/latencies.hpp"

namespace tokenrouter::bench {

/// The product's way of a handoff: a scheduler's place → switchboard → link → UCX → link →
/// switchboard → a scheduler's place, each rank with its reactor. Results are on both ranks.
struct actor_path_result {
  summary paced;          ///< both loops awake, as with requests in flight
  summary ping_pong;      ///< the same, the next handoff on the answer to the last
  summary flood;          ///< messages per second only, at most 128 on their way
  summary paced_sleeping; ///< the receiving loop sleeps between handoffs
  std::string carrier;    ///< the transport
};

/// Collective over two ranks of one host. At the end rank 0 runs `last` while rank 1 sleeps.
actor_path_result measure_actor_path(bootstrap& job, const std::function<void()>& last);

} // namespace tokenrouter::bench
