#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/transport/bulk.hpp"
#include "runtime/wire/frame.hpp"

namespace tokenrouter {

/// Carries frames between ranks. May lose, repeat, reorder and damage them, though those for real
/// use do not while both ranks live; that and liveness are the link's business. Used by the
/// reactor's thread alone.
class transport {
 public:
  /// Called from inside `progress()`; the payload is only valid during the call. A frame whose
  /// size and header disagree never gets here: it is dropped, counted and logged.
  using frame_sink =
      std::function<void(rank_id from, const frame_header& header, std::span<const std::byte>)>;

  virtual ~transport() = default;

  virtual void on_frame(frame_sink sink) = 0;

  /// Never blocks; the frame is sent at once where possible, else from a later `progress()`.
  /// Errors: unavailable (no endpoint to that rank, or it was closed), capacity (frame too long).
  virtual result<void> send(rank_id to, const frame_header& header,
                            std::vector<std::byte> payload) = 0;

  /// Moves data and hands frames to the sink; returns how many events there were (0: nothing).
  virtual std::size_t progress() = 0;

  /// Readable when there may be something to progress; -1 if the transport has none. Before a
  /// thread sleeps on it, `prepare_sleep()` must have returned true (false: progress again).
  virtual int event_fd() const = 0;
  virtual bool prepare_sleep() = 0;

  /// Sends accepted but not yet complete, over all peers.
  virtual std::size_t pending_sends() const = 0;

  /// What carries frames to that peer, for the start-up table, e.g. "ucx posix", "ucx tcp",
  /// "loopback".
  virtual std::string describe(rank_id peer) const = 0;

  /// Large buffers beside the frames. Owned by the transport.
  virtual bulk_wire& bulk() = 0;

  /// Drops everything for a peer that is gone, bulk transfers included, which end as not whole;
  /// later sends to it are errors.
  virtual void forget(rank_id peer) = 0;
};

} // namespace tokenrouter
