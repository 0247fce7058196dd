#pragma once

#include <cstddef>
#include <cstdint>

namespace tokenrouter::bench {

/// How much every contender does. All latencies are one way, from a stamp on rank 0 to rank 1 of
/// the same host.
inline constexpr std::size_t paced_messages = 5'000;
inline constexpr std::uint64_t pace_ns = 200'000;
inline constexpr std::size_t ping_pong_messages = 20'000;
inline constexpr std::size_t flood_messages = 200'000;

/// Messages of a contender that are not counted, before each measurement.
inline constexpr std::size_t warm_up_messages = 500;

} // namespace tokenrouter::bench
