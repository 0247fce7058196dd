#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "runtime/transport/frame_gate.hpp"
#include "runtime/transport/ucx/ucx_bulk.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"
#include "runtime/transport/ucx/ucx_worker.hpp"

namespace tokenrouter {

/// The state behind a `ucx_transport`; see there for what its functions promise. Its parts are in
/// ucx_transport.cpp (peers), ucx_send.cpp and ucx_receive.cpp.
class ucx_transport::impl {
 public:
  static constexpr unsigned message_id = 1;

  result<void> open(rank_id self);
  const std::vector<std::byte>& address() const { return address_; }
  result<void> connect(rank_id rank, std::span<const std::byte> address);
  bool close(std::uint32_t deadline_ms);
  result<void> send(rank_id to, const frame_header& header, std::vector<std::byte> payload);
  std::size_t progress();
  bool prepare_sleep();

  /// After close(): UCX still has sends or receives, so this object must never be destroyed.
  bool abandoned() const { return abandoned_; }

  std::size_t pending_sends() const { return in_flight_ + waiting_; }
  std::string describe(rank_id rank) const;
  void forget(rank_id rank);

  /// Null: no open way to that rank.
  ucp_ep_h endpoint_of(rank_id rank) const;

  frame_gate gate;
  ucx_worker worker;
  ucx_bulk bulk{worker, [this](rank_id rank) { return endpoint_of(rank); }};

 private:
  struct peer;

  /// Before every frame: who sent it and as which of its frames to this peer. UCX delivers a
  /// message in one piece but lets small ones overtake a large one, so the receiver restores order.
  struct envelope {
    std::uint64_t source; ///< random, one per incarnation of a rank; part of its address
    std::uint64_t order;  ///< 0, 1, 2 …
    frame_header frame;
  };

  /// One send. UCX reads header and payload until it calls back.
  struct outgoing {
    envelope head;
    std::vector<std::byte> payload;
    peer* to = nullptr;
    impl* owner = nullptr;
  };

  /// A frame that can't be handed over yet.
  struct incoming {
    frame_header frame{};
    std::unique_ptr<std::byte[]> payload;
    std::size_t payload_bytes = 0;
    bool complete = false;
    bool failed = false;
  };

  struct peer {
    rank_id rank;
    ucp_ep_h endpoint = nullptr; ///< null: forgotten
    std::size_t in_flight = 0;   ///< operations to it that UCX has
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::map<std::uint64_t, incoming> early;       ///< by order: incomplete, or behind such a one
    std::deque<std::unique_ptr<outgoing>> waiting; ///< UCX had no room for the first of these
  };

  /// A large frame whose data UCX fetches; `descriptor` is UCX's until the fetch starts.
  struct rendezvous {
    impl* owner;
    peer* from;
    std::uint64_t order;
    void* descriptor;
  };

  enum class posted : std::uint8_t { done, no_room, failed };

  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes,
                                 void* data, std::size_t data_bytes,
                                 const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* operation);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* transfer);

  peer* open_peer(rank_id rank) const;
  bool progress_until(std::uint64_t deadline_ns, const std::function<bool()>& done);

  std::unique_ptr<outgoing> new_operation();
  void end_operation(std::unique_ptr<outgoing> operation);
  posted post(std::unique_ptr<outgoing>& operation);
  std::size_t flush_waiting();

  ucs_status_t take(const envelope& head, void* data, std::size_t bytes, bool by_rendezvous);
  std::size_t fetch_announced();
  void finish(std::unique_ptr<rendezvous> transfer, ucs_status_t status);
  void deliver_ready(peer& from);

  rank_id self_{0};
  std::uint64_t source_ = 0;
  std::vector<std::byte> address_;
  std::unordered_map<std::uint32_t, peer*> by_rank_;
  std::unordered_map<std::uint64_t, std::unique_ptr<peer>> by_source_; ///< forgotten ones too
  std::vector<std::unique_ptr<outgoing>> spare_;
  std::vector<std::unique_ptr<rendezvous>> announced_;
  std::size_t in_flight_ = 0; ///< operations that UCX has, to peers that are not forgotten
  std::size_t stranded_ = 0;  ///< operations that UCX has, to forgotten peers; may never end
  std::size_t waiting_ = 0;   ///< operations that it had no room for
  std::size_t fetching_ = 0;  ///< rendezvous that UCX has
  bool in_progress_ = false;
  bool closed_ = false;
  bool abandoned_ = false;
};

} // namespace tokenrouter
