#pragma once

#include <cstddef>
#include <cstdint>

/// What one template and one rendering may use. Templates come from files and messages from users,
/// so each way to grow is bounded; a bound that is met is an error, never a crash.
namespace tokenrouter::jinja {

inline constexpr std::size_t source_bytes_max = std::size_t{4} << 20;

/// Levels of statements and of expressions in a template's syntax.
inline constexpr std::uint32_t syntax_depth_max = 120;

/// Nested evaluations, macro calls included.
inline constexpr std::uint32_t evaluation_depth_max = 600;

/// Levels of lists and mappings within each other.
inline constexpr std::uint32_t value_depth_max = 100;

/// Work of one rendering: one unit a step, list item or `bytes_per_unit` bytes of text made.
inline constexpr std::uint64_t work_units_max = 20'000'000;
inline constexpr std::size_t bytes_per_unit = 16;

/// Items of one range(), as in Jinja's sandbox.
inline constexpr std::int64_t range_items_max = 100'000;

} // namespace tokenrouter::jinja
