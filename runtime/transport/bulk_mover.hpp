#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/core/limits.hpp"
#include "runtime/transport/bulk.hpp"

namespace tokenrouter {

enum class bulk_way : std::uint8_t { out, in };

enum class bulk_stage : std::uint8_t {
  queued, ///< no memory for it yet
  ready,  ///< its buffer is there; post it
  moving,
  moved,
  failed, ///< the peer is lost, or had another number of bytes
};

/// All bulk transfers of one rank: prepare, post, test, release. Each way at most so many bytes are
/// in flight; the others wait their turn, but a transfer that is larger than all of that goes
/// alone. The two ways have limits of their own, so that ranks which wait for one another's data
/// can always send. Buffers are used again. Owned and used by the reactor's thread.
class bulk_mover {
 public:
  /// Told with a transfer's number when it becomes ready, moved or failed; from inside any call
  /// here, so it only takes a note.
  using observer = std::function<void(std::uint64_t transfer)>;

  /// `wire` is null where there are no other ranks, and outlives this otherwise.
  explicit bulk_mover(rank_id self, bulk_wire* wire = nullptr,
                      std::size_t bytes_max = limits::bulk_bytes_max);
  ~bulk_mover();
  bulk_mover(const bulk_mover&) = delete;
  bulk_mover& operator=(const bulk_mover&) = delete;

  /// Requires bytes > 0. Returns the transfer's number.
  std::uint64_t prepare(bulk_way way, std::size_t bytes, observer told);

  /// A tag for a transfer to this rank, never given before and never 0; its sender must be told.
  std::uint64_t new_tag() { return next_tag_++; }

  /// Post a transfer that is ready: of its buffer to the one that `to` posts with this tag, or the
  /// other way round. The peer may be this rank.
  void send(std::uint64_t transfer, rank_id to, std::uint64_t tag);
  void receive(std::uint64_t transfer, rank_id from, std::uint64_t tag);

  bulk_stage test(std::uint64_t number) const { return transfers_.at(number).stage; }

  /// Of a transfer that is not queued. One that came in may have another buffer than before.
  const std::shared_ptr<bulk_buffer>& buffer(std::uint64_t number) const {
    return transfers_.at(number).buffer;
  }

  /// At any stage, once for each transfer. If it is moving its end no longer matters.
  void release(std::uint64_t transfer);

  std::size_t transfers() const { return transfers_.size(); }
  std::size_t in_flight_bytes(bulk_way way) const { return lane_of(way).used_bytes; }

 private:
  struct transfer {
    bulk_way way = bulk_way::out;
    bulk_stage stage = bulk_stage::queued;
    std::size_t bytes = 0;
    std::uint64_t tag = 0;
    bool at_home = false; ///< between two of this rank
    std::shared_ptr<bulk_buffer> buffer;
    observer told;
  };
  struct lane {
    std::size_t used_bytes = 0;
    std::deque<std::uint64_t> queue;
  };
  struct home_pair {
    std::uint64_t from = 0, to = 0; ///< transfers; 0: not posted yet
  };

  lane& lane_of(bulk_way way) { return lanes_[way == bulk_way::out ? 0 : 1]; }
  const lane& lane_of(bulk_way way) const { return lanes_[way == bulk_way::out ? 0 : 1]; }
  void admit(bulk_way way);
  std::shared_ptr<bulk_buffer> take_buffer(std::size_t bytes);
  void keep_buffer(std::shared_ptr<bulk_buffer> buffer);
  void post(std::uint64_t number, rank_id peer, std::uint64_t tag);
  void meet_at_home(std::uint64_t number, std::uint64_t tag);
  void end(std::uint64_t number, bool whole);

  rank_id self_;
  bulk_wire* wire_;
  std::size_t bytes_max_;
  lane lanes_[2];
  std::map<std::uint64_t, transfer> transfers_;
  std::map<std::uint64_t, home_pair> at_home_; ///< by tag: one of the two is not posted yet
  std::vector<std::shared_ptr<bulk_buffer>> spare_;
  std::uint64_t next_transfer_ = 1;
  std::uint64_t next_tag_ = 1;
};

} // namespace tokenrouter
