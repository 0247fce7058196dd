#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/link_receive_window.hpp"
#include "actors/link_send_window.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/wire/frame.hpp"

namespace tokenrouter {

/// What ranks tell each other before anything else; they must agree.
struct hello {
  std::uint64_t config_hash = 0;
  std::uint64_t vocabulary_fingerprint = 0;
  std::string host;

  template <class Inspector>
  friend auto inspect(Inspector& f, hello& x) {
    return f(x.config_hash, x.vocabulary_fingerprint, x.host);
  }
};

/// Why two ranks must not talk; empty if they may.
std::string compare(const hello& mine, const hello& theirs);

enum class frame_verdict : std::uint8_t {
  deliver, ///< the next in order; `next_ready` may have more
  kept,    ///< early: delivered by `next_ready` once those before it are here
  control, ///< nothing to deliver: a heartbeat
  drop,    ///< repeated, beyond its credit, or of another incarnation of the peer
  broken,  ///< no such frame can come from a link: the peer cannot be trusted
};

struct link_settings {
  rank_id self;
  std::uint64_t heartbeat_us = 200'000; ///< longest pause between two frames to the peer
  std::uint64_t peer_timeout_us = 5'000'000;
  std::uint32_t window_frames_max = limits::link_window_frames;
  std::size_t window_bytes_max = limits::link_window_bytes;

  /// An acknowledgement waits this long for a frame to ride on.
  std::uint64_t ack_delay_us() const { return heartbeat_us / 100 + 1; }

  /// A frame is sent again after this long at first; then the wait doubles up to the heartbeat.
  std::uint64_t resend_us() const { return heartbeat_us / 10 + 1; }
};

/// A frame to send, complete but for the length and checksum of its payload.
struct outgoing_frame {
  frame_header header;
  std::vector<std::byte> payload;
};

/// All a link knows of its peer: makes a wire that loses, repeats, reorders and damages frames
/// deliver each once and in order, and watches over the peer's life. Free of CAF and I/O.
///
/// Whoever calls `post`, `on_frame` or `on_time` then takes from `take_outgoing` what is to be sent
/// until there is nothing, and calls `on_time` again at `due_us`.
class link_state {
 public:
  link_state(link_settings settings, std::uint64_t now_us);

  /// Takes a hello (the first), data, or the goodbye (the last). After the peer's goodbye: no
  /// effect.
  void post(frame_kind kind, std::vector<std::byte> payload);

  /// The next frame to send; each carries the acknowledgement.
  std::optional<outgoing_frame> take_outgoing(std::uint64_t now_us);

  /// Judges a frame that passed its check, and notes that the peer lives. The payload is taken if
  /// `kept`.
  frame_verdict on_frame(const frame_header& header, std::vector<std::byte>& payload,
                         std::uint64_t now_us);

  /// Kept frames that follow the one just delivered, one by one.
  std::optional<numbered_frame> next_ready();

  /// A frame came that did not pass its check: as good as lost.
  void on_damaged_frame() { ++damaged_frames_; }

  /// `wire_busy`: the transport has not sent all that it was given.
  void on_time(std::uint64_t now_us, bool wire_busy) { sending_.on_time(now_us, wire_busy); }

  /// This rank stood still for so long (stopped, or starved of its core): that is no silence of the
  /// peer, whose frames wait to be read.
  void forgive(std::uint64_t absence_us);

  /// When `on_time` and `take_outgoing` want to be called next: no earlier than the heartbeat's
  /// time unless a frame or an acknowledgement is open. None once it is over.
  std::optional<std::uint64_t> due_us() const;

  /// True once the peer's hello was accepted.
  bool greeted() const { return greeted_; }
  void greet() { greeted_ = true; }

  bool peer_left() const { return left_; }

  /// Nothing more will be sent: our goodbye is acknowledged, or the peer has said its own. A rank
  /// that says goodbye wants no more of its peer, so what it had not yet received is dropped.
  bool closed() const { return closing_ && (left_ || sending_.empty()); }

  /// Silence in microseconds, if it is longer than the peer's timeout. Never once it is over.
  std::optional<std::uint64_t> timed_out(std::uint64_t now_us) const;

  /// How long the peer has lived without acknowledging a frame that was sent again and again, if
  /// that is longer than its timeout: nothing gets through to it.
  std::optional<std::uint64_t> stalled(std::uint64_t now_us) const;

  const link_send_window& sending() const { return sending_; }
  const link_receive_window& receiving() const { return receiving_; }
  std::uint64_t damaged_frames() const { return damaged_frames_; }

 private:
  bool over() const { return left_ || closed(); }
  bool heartbeat_due(std::uint64_t now_us) const;
  void note_delivery(frame_kind kind);
  frame_header stamp(frame_kind kind, std::uint64_t sequence, std::uint64_t now_us);

  link_settings settings_;
  link_send_window sending_;
  link_receive_window receiving_;
  std::uint64_t last_heard_us_;
  std::uint64_t last_sent_us_;
  std::optional<std::uint32_t> peer_epoch_;
  bool greeted_ = false;
  bool closing_ = false;
  bool left_ = false;
  std::uint64_t damaged_frames_ = 0;
};

} // namespace tokenrouter
