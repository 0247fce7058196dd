#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "actors/link_send_window.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

struct receive_window_limits {
  std::uint32_t frames_max = limits::link_window_frames;
  std::size_t bytes_max = limits::link_window_bytes; ///< of early frames, beside the longest one
  std::uint64_t ack_delay_us = 0;
};

enum class arrival_order : std::uint8_t {
  next,     ///< to be delivered now; `next_ready` may have more
  early,    ///< kept until those before it are here
  repeated, ///< was here before
  beyond,   ///< more than the peer had credit for; dropped as if lost
};

/// The receiving half of a link: puts numbered frames in order and decides when their
/// acknowledgement must go out by itself: at once when something is missing, was repeated or filled
/// a hole, or when a quarter of the window is open; else after the delay, if nothing carried it.
class link_receive_window {
 public:
  explicit link_receive_window(receive_window_limits limits) : limits_(limits) {}

  /// Requires sequence > 0. Takes the payload of an `early` frame, leaves any other alone.
  arrival_order take(frame_kind kind, std::uint64_t sequence, std::vector<std::byte>& payload,
                     std::uint64_t now_us);

  /// Kept frames that have become the next; none if the next is missing.
  std::optional<numbered_frame> next_ready();

  /// Highest number delivered with all before it: what every frame acknowledges.
  std::uint64_t received() const { return received_; }

  /// A frame with `received()` goes out.
  void acknowledged();

  /// The next acknowledgement does not wait.
  void acknowledge_now() { ack_now_ = true; }

  bool ack_wanted(std::uint64_t now_us) const;

  /// When `ack_wanted` becomes true by itself; none if nothing is to be acknowledged.
  std::optional<std::uint64_t> due_us() const { return ack_due_us_; }

  std::uint64_t early_frames() const { return early_frames_; }
  std::uint64_t repeated_frames() const { return repeated_frames_; }

 private:
  void advance(std::size_t payload_bytes);

  receive_window_limits limits_;
  std::map<std::uint64_t, numbered_frame> early_;
  std::size_t early_bytes_ = 0;
  std::uint64_t received_ = 0;
  std::uint32_t open_frames_ = 0; ///< delivered since the last acknowledgement
  std::size_t open_bytes_ = 0;
  std::optional<std::uint64_t> ack_due_us_;
  bool ack_now_ = false;
  std::uint64_t early_frames_ = 0;
  std::uint64_t repeated_frames_ = 0;
};

} // namespace tokenrouter
