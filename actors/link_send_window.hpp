#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "runtime/core/limits.hpp"
#include "runtime/wire/frame.hpp"

namespace tokenrouter {

/// A frame that has, or will get, a number: hello, data or goodbye.
struct numbered_frame {
  frame_kind kind = frame_kind::data;
  std::uint64_t sequence = 0;
  std::vector<std::byte> payload;
};

struct send_window_limits {
  std::uint32_t frames_max = limits::link_window_frames;
  std::size_t bytes_max = limits::link_window_bytes; ///< one frame may be longer than all of it
  std::uint64_t resend_min_us = 0;                   ///< first wait for an acknowledgement
  std::uint64_t resend_max_us = 0;                   ///< the wait doubles up to this
};

/// The sending half of a link: gives frames their numbers, keeps a copy of each until the peer has
/// acknowledged it, and says when one must go again. Only the first frame that is missing is sent
/// again; when its acknowledgement shows the next hole, that one follows at once.
///
/// A payload is copied once, on its first way out, into a buffer that is used again and again; the
/// original goes to the transport. So a frame costs no allocation here while nothing is lost.
class link_send_window {
 public:
  explicit link_send_window(send_window_limits limits);

  /// Takes a frame; it waits here, in order, for its credit.
  void post(frame_kind kind, std::vector<std::byte> payload);

  /// The frame to send now: one to send again, else the first that waits and has credit.
  std::optional<numbered_frame> take(std::uint64_t now_us);

  /// The peer has all frames up to `sequence`. `alone`: the frame that says so carries nothing
  /// else, so saying it again means that a later frame came and this one's successor did not.
  /// False if no frame has that number.
  bool acknowledge(std::uint64_t sequence, bool alone, std::uint64_t now_us);

  /// Sends the first missing frame again if its time has come, unless the wire is still busy: what
  /// has not left cannot have been lost.
  void on_time(std::uint64_t now_us, bool wire_busy);

  /// When `on_time` wants to be called; none while nothing is on the wire.
  std::optional<std::uint64_t> due_us() const {
    if (unacknowledged() == 0)
      return std::nullopt;
    return waits_since_us_ + resend_us_;
  }

  /// How long acknowledgements have stood still although the first missing frame went out
  /// repeatedly; 0 if they have not.
  std::uint64_t stalled_us(std::uint64_t now_us) const;

  /// That long nothing could be acknowledged, since nobody looked.
  void forgive(std::uint64_t absence_us) { progress_us_ += absence_us; }

  /// The peer listens no more: forgets every frame.
  void abandon();

  std::uint64_t unacknowledged() const { return sent_ - acknowledged_; }
  std::size_t waiting_frames() const { return waiting_.size(); }
  bool empty() const { return unacknowledged() == 0 && waiting_.empty(); }
  std::uint64_t resent_frames() const { return resent_frames_; }

 private:
  struct kept_frame {
    frame_kind kind = frame_kind::data;
    std::vector<std::byte> payload;
  };

  bool has_credit(std::size_t bytes) const;
  kept_frame& kept(std::uint64_t sequence) { return kept_[sequence & (kept_.size() - 1)]; }
  void keep(const numbered_frame& frame);
  void drop_kept(std::uint64_t sequence);
  void start_recovery();

  send_window_limits limits_;
  std::deque<numbered_frame> waiting_; ///< without numbers yet
  std::vector<kept_frame> kept_;       ///< ring by sequence; its size is a power of two
  std::uint64_t sent_ = 0;             ///< highest number given
  std::uint64_t acknowledged_ = 0;
  std::size_t open_bytes_ = 0; ///< of the unacknowledged frames
  std::uint64_t resend_us_;    ///< the wait in force
  std::uint64_t waits_since_us_ = 0;
  std::uint64_t progress_us_ = 0; ///< when acknowledgements last moved, or had nothing to move for
  std::uint64_t recover_until_ = 0; ///< holes up to this number are filled one after the other
  std::uint32_t repeats_ = 0;       ///< of the last acknowledgement, alone
  std::uint32_t tries_ = 0;         ///< resends since progress
  bool resend_first_ = false;
  std::uint64_t resent_frames_ = 0;
};

} // namespace tokenrouter
