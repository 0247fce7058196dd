#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "runtime/transport/bulk.hpp"
#include "runtime/transport/ucx/ucx_worker.hpp"

namespace tokenrouter {

/// Bulk transfers as tagged messages of a worker: straight from buffer to buffer where UCX can.
///
/// UCX may hold on to a buffer after the end that the user was told: its endpoints have no error
/// handling, so what is under way with a peer that dies may never end. Such operations are stranded
/// and keep their buffers.
class ucx_bulk final : public bulk_wire {
 public:
  using endpoint_finder = std::function<ucp_ep_h(rank_id)>; ///< null: no way to that rank

  ucx_bulk(ucx_worker& worker, endpoint_finder endpoint)
      : worker_(worker), endpoint_(std::move(endpoint)) {}

  void on_end(end_sink sink) override { sink_ = std::move(sink); }
  void send(rank_id to, std::uint64_t tag, std::uint64_t operation,
            std::shared_ptr<bulk_buffer> buffer) override;
  void receive(rank_id from, std::uint64_t tag, std::uint64_t operation,
               std::shared_ptr<bulk_buffer> buffer) override;
  void cancel(std::uint64_t operation) override;

  /// Hands over what has ended; how much that was.
  std::size_t deliver();
  bool idle() const { return ended_.empty(); }

  void forget(rank_id peer);

  /// Takes back all receives; nobody is told of anything any more.
  void close();

  std::size_t in_flight() const { return open_.size(); } ///< that somebody waits for
  std::size_t stranded() const { return stranded_.size(); }

 private:
  /// What UCX has. It reads or writes the buffer until it calls back.
  struct transfer {
    ucx_bulk* owner = nullptr;
    std::uint64_t operation = 0;
    rank_id peer;
    bool out = false;
    void* request = nullptr;
    std::shared_ptr<bulk_buffer> buffer;
  };
  using transfer_map = std::map<std::uint64_t, std::unique_ptr<transfer>>;

  static void on_sent(void* request, ucs_status_t status, void* user);
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* user);
  void post(std::unique_ptr<transfer> one, ucs_status_ptr_t request, bool whole);
  void finish(transfer* one, bool whole);
  void strand(transfer_map::iterator at);

  ucx_worker& worker_;
  endpoint_finder endpoint_;
  end_sink sink_;
  transfer_map open_;                               ///< by operation
  std::vector<std::unique_ptr<transfer>> stranded_; ///< nobody waits for these any more
  std::vector<std::pair<std::uint64_t, bool>> ended_;
};

} // namespace tokenrouter
