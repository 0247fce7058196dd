#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// Which replica of a model serves a new request, for as long as it lives: the one with the fewest
/// live requests of this home rank. Among equals the start of the prompt decides, so that requests
/// which share it meet in one prefix cache. Requires at least one replica.
std::uint16_t choose_replica(std::span<const std::uint32_t> live_requests,
                             std::span<const token_id> prompt);

} // namespace tokenrouter
