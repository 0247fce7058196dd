#pragma once

#include "runtime/transport/bootstrap.hpp"
#include "tests/bench/handoff/latencies.hpp"

namespace tokenrouter::bench {

/// The floor: UCX's own active messages of about the size of a handoff, both ranks busy, no code of
/// ours on the way. Collective over two ranks; results are on rank 0.
struct raw_ucx_result {
  summary paced;
  summary ping_pong;
};

raw_ucx_result measure_raw_ucx(bootstrap& job);

} // namespace tokenrouter::bench
