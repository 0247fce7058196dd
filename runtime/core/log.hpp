#pragma once

#include <string_view>

#include <spdlog/spdlog.h>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// Sends the log to stderr, each line with time, level and rank. Call once, before any other
/// thread runs. `level` is one of trace, debug, info, warn, error, off; unknown means warn.
void init_log(rank_id rank, std::string_view level);

} // namespace tokenrouter
