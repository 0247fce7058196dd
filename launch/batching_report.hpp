#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/planning/threshold_lists.hpp"

/// What `optimize-batching` prints. `names`: one a model.
namespace tokenrouter {

/// The choices for one number of live requests, best first, no more than `rows_max` (0: all) but
/// always the one without delay, and the lines to paste into a config.
std::string table_text(const batching_table& table, const std::vector<std::string>& names,
                       std::uint32_t rows_max);
std::string table_json(const batching_table& table, std::uint32_t live_requests,
                       const std::vector<std::string>& names);

/// The thresholds for every number of live requests, and the lines to paste.
std::string lists_text(const threshold_lists& lists, const std::vector<std::string>& names);
std::string lists_json(const threshold_lists& lists, const std::vector<std::string>& names);

} // namespace tokenrouter
