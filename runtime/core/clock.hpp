#pragma once

#include <chrono>
#include <cstdint>

namespace tokenrouter {

/// Microseconds of the monotonic clock of this host. Comparable between processes of one host.
inline std::uint64_t monotonic_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

inline std::uint64_t monotonic_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

} // namespace tokenrouter
