#pragma once

#include <cstdint>
#include <optional>
#include <string>

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
  deliver, ///< a data frame, in order
  control, ///< nothing to deliver
  drop,    ///< of another incarnation of the peer
  broken,  ///< a frame is missing or out of order: the stream cannot be trusted
};

/// Numbers, acknowledges and times the frames of one peer. Free of CAF and I/O.
class link_state {
 public:
  link_state(rank_id self, std::uint64_t peer_timeout_us, std::uint64_t now_us);

  /// The header of the next frame to send; stamps the time.
  frame_header next_header(frame_kind kind, std::uint64_t now_us);

  /// Judges a frame on arrival and notes that the peer lives.
  frame_verdict on_frame(const frame_header& header, std::uint64_t now_us);

  /// True once the peer's hello was accepted.
  bool greeted() const { return greeted_; }
  void greet() { greeted_ = true; }

  bool peer_left() const { return left_; }

  /// Nothing was sent for a whole period.
  bool heartbeat_due(std::uint64_t now_us, std::uint64_t period_us) const;

  /// Silence in microseconds, if it is longer than the peer's timeout. After a goodbye: never.
  std::optional<std::uint64_t> timed_out(std::uint64_t now_us) const;

  /// Data frames sent that the peer has not acknowledged yet.
  std::uint64_t unacknowledged() const { return sent_ - acknowledged_; }

 private:
  rank_id self_;
  std::uint64_t peer_timeout_us_;
  std::uint64_t last_heard_us_;
  std::uint64_t last_sent_us_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::optional<std::uint32_t> peer_epoch_;
  bool greeted_ = false;
  bool left_ = false;
};

} // namespace tokenrouter
