#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/transport/transport.hpp"

namespace tokenrouter {

/// Frames as UCX active messages: shared memory between ranks of a host, the best network
/// otherwise; large ones by rendezvous. Bulk transfers are tagged messages of the same worker. All
/// calls come from one thread.
///
/// Shared memory never reports a dead peer, and UCX's mode that does would give up shared memory,
/// so this transport reports none: the link's heartbeats do, and then it says `forget`.
class ucx_transport final : public transport {
 public:
  /// Errors: unavailable (UCX can't start; the message has its reason).
  static result<std::unique_ptr<ucx_transport>> create(rank_id self);

  /// Closes as `close(close_deadline_ms)` does.
  ~ucx_transport() override;

  /// What a peer needs to `connect`: opaque bytes, the same while this object lives.
  std::vector<std::byte> address() const;

  /// A way to that rank, by the bytes its `address()` gave. Never blocks. A rank that was forgotten
  /// may be connected anew, as another incarnation with another address. Errors: malformed (not an
  /// address of a `ucx_transport`), mismatch (the address of another rank), unavailable.
  /// Requires peer != self and that there is no open way to it.
  result<void> connect(rank_id peer, std::span<const std::byte> address);

  /// Lets sends that were accepted leave, then closes. Returns within about `deadline_ms` even when
  /// peers are dead or hang; true if everything had left by then. Later sends are errors.
  bool close(std::uint32_t deadline_ms);
  static constexpr std::uint32_t close_deadline_ms = 500;

  /// Frames that arrived and were not handed on: malformed, from strangers, or failed on the way.
  std::uint64_t dropped_frames() const;

  void on_frame(frame_sink sink) override;
  result<void> send(rank_id to, const frame_header& header,
                    std::vector<std::byte> payload) override;
  std::size_t progress() override;
  int event_fd() const override;
  bool prepare_sleep() override;
  std::size_t pending_sends() const override;
  std::string describe(rank_id peer) const override;
  bulk_wire& bulk() override;
  void forget(rank_id peer) override;

 private:
  class impl;
  explicit ucx_transport(std::unique_ptr<impl> state);

  std::unique_ptr<impl> impl_;
};

} // namespace tokenrouter
