#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/trace/event.hpp"

namespace tokenrouter {

/// Whose events a file holds. Written as attributes of the root: `format`, `rank`, `host`,
/// `models` (names in the order of their ids), `wall_time_us` and `monotonic_us` of the opening.
struct trace_origin {
  rank_id rank;
  std::string host;
  std::vector<std::string> model_names;
};

/// One rank's trace: an HDF5 file in single-writer-multiple-reader mode with a chunked, extendible
/// dataset of compound rows for each kind of event. It can be read while it is written, and after a
/// kill up to the last flush. All calls come from one thread: HDF5 is not thread-safe.
class hdf5_writer {
 public:
  /// Replaces an existing file. Errors: io, naming the file.
  static result<std::unique_ptr<hdf5_writer>> create(const std::filesystem::path& file,
                                                     const trace_origin& origin);
  ~hdf5_writer();

  /// Rows are gathered and written in batches.
  void append(const trace_batch& batch);

  /// Writes what was gathered and makes it visible to readers.
  void flush();

  /// False after a write failed (the disk is full, say): later rows are dropped.
  bool healthy() const;

 private:
  struct parts;
  explicit hdf5_writer(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

} // namespace tokenrouter
