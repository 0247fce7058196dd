#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/transport/bulk_matcher.hpp"
#include "runtime/transport/transport.hpp"

namespace tokenrouter {

/// What may happen to one frame; shares are probabilities in [0, 1], drawn independently.
struct network_faults {
  std::uint64_t delay_min_us = 1;
  std::uint64_t delay_max_us = 1;
  float drop_share = 0;
  float duplicate_share = 0; ///< delivered once more, after a delay of its own
  float reorder_share = 0;   ///< may overtake and be overtaken; otherwise order per pair is kept
  float corrupt_share = 0;   ///< one bit of header or payload flips
  /// Of bulk transfers, whose delays are of the same range: end on both sides as not whole, or with
  /// one bit flipped.
  float bulk_fail_share = 0;
  float bulk_corrupt_share = 0;
};

/// An in-memory network with a virtual clock whose faults are a pure function of the seed and of
/// the order of sends. All endpoints and the network belong to one thread.
class simulated_network {
 public:
  simulated_network(std::uint32_t ranks, std::uint64_t seed, network_faults faults = {});
  ~simulated_network();

  /// Requires rank < ranks. Owned by the network. Its `progress()` hands over what is due by the
  /// network's clock; a send to a dead or unreachable rank succeeds and is lost.
  transport& endpoint(rank_id rank);

  /// For frames sent from now on.
  void set_faults(network_faults faults) { faults_ = faults; }

  std::uint64_t now_us() const { return now_us_; }

  /// When the next frame arrives anywhere; none if nothing is under way.
  std::optional<std::uint64_t> next_arrival_us() const;

  /// Requires us >= now_us().
  void advance_to(std::uint64_t us);

  /// Frames between the two, either way, are lost until `heal`, those under way included.
  void cut(rank_id a, rank_id b);
  void heal(rank_id a, rank_id b);

  /// Everything to and from that rank is lost, now and until `revive`.
  void kill(rank_id rank);
  void revive(rank_id rank);

  std::uint64_t sent_frames() const { return sent_frames_; }
  std::uint64_t lost_frames() const { return lost_frames_; }

 private:
  class endpoint_impl;

  struct packet {
    rank_id from;
    rank_id to;
    frame_header header;
    std::vector<std::byte> payload;
  };

  using pair = std::pair<std::uint32_t, std::uint32_t>;

  void accept_bulk(bulk_post post);
  void finish_bulk(const bulk_matcher::pair& both, std::uint32_t position);
  bool reachable(rank_id a, rank_id b) const;
  void accept(packet sent);
  void put_under_way(packet sent, std::uint32_t position, std::uint32_t lane);
  float draw(std::uint32_t position, std::uint32_t lane) const;
  void lose_unreachable();

  const std::uint64_t seed_;
  network_faults faults_;
  std::uint64_t now_us_ = 1;
  std::uint64_t sent_frames_ = 0;
  std::uint64_t lost_frames_ = 0;
  std::multimap<std::uint64_t, packet> under_way_; ///< by arrival; equal ones in order of sending
  struct moving_bulk {
    bulk_matcher::pair both;
    std::uint32_t position; ///< of its draws
  };
  std::uint64_t bulk_transfers_ = 0;
  bulk_matcher bulk_posts_;
  std::multimap<std::uint64_t, moving_bulk> bulk_under_way_;
  std::map<pair, std::uint64_t> last_arrival_us_; ///< per (from, to), of frames kept in order
  std::set<pair> cuts_;                           ///< (lower, higher)
  std::set<std::uint32_t> dead_;
  std::vector<std::unique_ptr<endpoint_impl>> endpoints_;
};

} // namespace tokenrouter
