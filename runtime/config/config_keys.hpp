#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokenrouter {

/// Every key of a config file as a dotted path; NAME stands for a model's name.
std::span<const std::string_view> known_config_keys();

/// The names that may stand directly under a path of that kind ("" = top level), in order.
std::vector<std::string_view> config_names_under(std::string_view parent);

/// The job-wide defaults, which may stand at top level and in each model.
std::span<const std::string_view> job_wide_names();

/// What to do about an unknown name under `parent`: the nearest name there, a place elsewhere that
/// has this name, or the list of what is known.
std::string advice_on_key(std::string_view parent, std::string_view unknown);

/// Damerau-Levenshtein distance: edits of one letter and exchanges of two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// "a, b and c".
std::string listed(std::span<const std::string_view> names);

} // namespace tokenrouter
