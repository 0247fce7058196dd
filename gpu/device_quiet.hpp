#pragma once

#include <cstdint>
#include <shared_mutex>

namespace tokenrouter::gpu {

/// Models of one process load at the same time; what one of them measures on a device must not be
/// that of another's work there. Held shared to load, alone to measure, never while waiting for
/// another shard. Any thread; of all devices of the process.
std::shared_mutex& quiet_of(std::uint32_t device);

} // namespace tokenrouter::gpu
