#pragma once

#include <vector>

#include "runtime/core/error.hpp"
#include "tests/bench/handoff/latencies.hpp"

namespace tokenrouter::bench {

/// What the script ci/bench/zmq_pickle.py measures.
struct zmq_pickle_result {
  summary paced_blocking; ///< the receiver sleeps in recv
  summary paced_polling;  ///< the receiver polls without pause
  summary ping_pong;      ///< both sides poll
  summary flood;          ///< messages per second only
};

/// Runs the script with its two processes on two of those cores (all on one, if there is one).
/// Requires the working directory to be the root of the repository. Errors: not_found (no python3
/// with zmq), malformed (its output can't be read).
result<zmq_pickle_result> measure_zmq_pickle(const std::vector<int>& cores);

} // namespace tokenrouter::bench
