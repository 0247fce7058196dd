#pragma once

#include <string_view>

#include <spdlog/spdlog.h>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// Sends the log to stderr, each line with time, level and rank. Call before any other
/// thread logs. `level` is one of trace, debug, info, warn, error, off; unknown means warn.
void init_log(rank_id rank, std::string_view level);

} // namespace tokenrouter
