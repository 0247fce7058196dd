#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// One UCX context and worker with active messages and wake-up. Used by one thread.
class ucx_worker {
 public:
  ucx_worker() = default;
  ~ucx_worker();
  ucx_worker(const ucx_worker&) = delete;
  ucx_worker& operator=(const ucx_worker&) = delete;

  result<void> open();

  ucp_worker_h handle() const { return worker_; }

  /// Readable on an event of UCX after `arm()` and when the time of `arm_timer()` is up.
  int event_fd() const { return event_fd_; }

  /// False: UCX has something to progress first.
  bool arm();

  /// Instead of `arm()`, when that is refused for good.
  void arm_timer(std::uint64_t ns);
  result<std::vector<std::byte>> address() const;

  /// Requires that `address` came from another worker's `address()`, unchanged.
  result<ucp_ep_h> connect(std::span<const std::byte> address);

 private:
  void set_timer(std::uint64_t ns);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1; ///< an epoll of UCX's own descriptor, which the worker owns, and the timer
  int timer_fd_ = -1;
  bool timer_armed_ = false;
};

/// "ucx " and the transport that carries active messages of this endpoint, e.g. "ucx posix";
/// "ucx (connecting)" before UCX has settled on one.
std::string describe_endpoint(ucp_ep_h endpoint);

error ucx_error(errc code, const std::string& what, ucs_status_t status);

} // namespace tokenrouter
