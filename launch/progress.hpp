#pragma once

#include <cstddef>
#include <cstdint>

namespace tokenrouter {

/// A line on stderr that shows how far a run is, redrawn ten times a second at most; nothing if
/// stderr is no terminal or there is only one item.
class progress_bar {
 public:
  explicit progress_bar(std::size_t total);
  void advance(std::size_t tokens);
  /// Wipes the line.
  void finish();

 private:
  bool shown_;
  std::size_t total_;
  std::size_t done_ = 0;
  std::size_t tokens_ = 0;
  std::uint64_t started_us_;
  std::uint64_t drawn_us_ = 0;
};

} // namespace tokenrouter
