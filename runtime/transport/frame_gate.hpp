#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/transport/transport.hpp"

namespace tokenrouter {

/// The last step of every transport: hands a frame to the sink, or drops it when its header
/// announces another size than it has. The checksum is the receiver's to check (`check_frame`).
class frame_gate {
 public:
  void open(transport::frame_sink sink) { sink_ = std::move(sink); }

  /// True if the frame went to the sink. One that comes before there is a sink is dropped.
  bool pass(rank_id from, const frame_header& header, std::span<const std::byte> payload);

  /// Counts and logs a frame that arrived but can't be handed on.
  void drop(rank_id from, const char* why);

  std::uint64_t dropped_frames() const { return dropped_frames_; }

 private:
  transport::frame_sink sink_;
  std::uint64_t dropped_frames_ = 0;
};

} // namespace tokenrouter
