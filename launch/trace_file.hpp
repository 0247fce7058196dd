#pragma once

#include <filesystem>

#include "actors/tracer.hpp"
#include "runtime/trace/hdf5_writer.hpp"

namespace tokenrouter {

/// Opens `directory`/trace-rank-N.h5 (the folder is made) when the tracer's thread asks. If that
/// fails, an error line is logged and the rank runs on without a trace.
tracer::sink_factory make_trace_opener(std::filesystem::path directory, trace_origin origin);

} // namespace tokenrouter
