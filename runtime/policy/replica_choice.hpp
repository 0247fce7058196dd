#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

inline constexpr std::uint32_t lost_replica = ~std::uint32_t{0}; ///< in place of a load
inline constexpr std::uint16_t no_replica = ~std::uint16_t{0};

/// Which replica of a model serves a new request, for as long as it lives: the one with the fewest
/// live requests of this home rank. Among equals the start of the prompt decides, so that requests
/// which share it meet in one prefix cache. no_replica if all are lost. Requires at least one.
std::uint16_t choose_replica(std::span<const std::uint32_t> live_requests,
                             std::span<const token_id> prompt);

} // namespace tokenrouter
