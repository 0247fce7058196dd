#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// Host memory of one transfer, uninitialised at first. Shared by whoever hands it on; only one of
/// them touches the bytes at a time.
class bulk_buffer {
 public:
  explicit bulk_buffer(std::size_t capacity_bytes)
      : memory_(std::make_unique_for_overwrite<std::byte[]>(capacity_bytes)),
        capacity_bytes_(capacity_bytes) {}

  std::size_t capacity_bytes() const { return capacity_bytes_; }

  /// Requires used_bytes <= capacity_bytes().
  void use(std::size_t used_bytes) { used_bytes_ = used_bytes; }

  std::span<std::byte> bytes() const { return {memory_.get(), used_bytes_}; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_bytes_;
  std::size_t used_bytes_ = 0;
};

/// Moves large buffers between two ranks beside the frames of a transport: what one rank sends with
/// a tag ends up in the buffer with which the other receives that tag. Not ordered with frames or
/// with one another. Says nothing about damage: the user's checksum does. Used by the reactor's
/// thread alone.
class bulk_wire {
 public:
  /// `whole`: all bytes were moved, and as many as the buffer of the receiver takes.
  using end_sink = std::function<void(std::uint64_t operation, bool whole)>;

  virtual ~bulk_wire() = default;

  /// Called from the transport's `progress()` once for each operation that is not cancelled.
  virtual void on_end(end_sink sink) = 0;

  /// The wire keeps the buffer until it no longer touches it, which may be after the end: a peer
  /// may be lost in the middle. `operation` is the user's name for it. Requires that tag to be used
  /// once on each of the two ranks, and the peer to be another rank.
  virtual void send(rank_id to, std::uint64_t tag, std::uint64_t operation,
                    std::shared_ptr<bulk_buffer> buffer) = 0;
  virtual void receive(rank_id from, std::uint64_t tag, std::uint64_t operation,
                       std::shared_ptr<bulk_buffer> buffer) = 0;

  /// The user no longer wants to hear of that operation.
  virtual void cancel(std::uint64_t operation) = 0;
};

} // namespace tokenrouter
