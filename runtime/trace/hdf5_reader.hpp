#pragma once

#include <filesystem>

#include "runtime/core/error.hpp"
#include "runtime/trace/event.hpp"
#include "runtime/trace/hdf5_writer.hpp"

namespace tokenrouter {

/// A whole trace file.
struct trace_file {
  trace_origin origin;
  std::uint64_t wall_time_us = 0; ///< at `monotonic_us` of the events' clock
  std::uint64_t monotonic_us = 0;
  trace_batch events;
};

/// Reads a trace, also one that is being written, or whose writer was killed (all rows up to its
/// last flush). Errors: not_found, malformed; the file is named.
result<trace_file> read_trace(const std::filesystem::path& file);

} // namespace tokenrouter
