#include "tests/bench/handoff/raw_ucx.hpp"

#include <array>
#include <cstring>

#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/transport/ucx/ucx_worker.hpp"
#include "tests/bench/handoff/plan.hpp"

namespace tokenrouter::bench {

namespace {

constexpr unsigned message_id = 1;
constexpr std::size_t header_bytes = 56;  // as much as the transport's
constexpr std::size_t message_bytes = 96; // about an encoded handoff

struct side {
  ucx_worker worker;
  ucp_ep_h peer = nullptr;
  std::array<std::byte, header_bytes> header{};
  std::array<std::byte, message_bytes> message{};
  std::size_t received = 0;
  std::uint64_t stamp_ns = 0;
  std::uint64_t arrived_ns = 0;

  void send(std::uint64_t stamp) {
    std::memcpy(message.data(), &stamp, sizeof stamp);
    const ucp_request_param_t param{};
    const auto request = ucp_am_send_nbx(peer, message_id, header.data(), header.size(),
                                         message.data(), message.size(), &param);
    check(!UCS_PTR_IS_ERR(request), "UCX refused a message");
    if (request == nullptr)
      return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
      ucp_worker_progress(worker.handle());
    ucp_request_free(request);
  }

  void await(std::size_t messages) {
    while (received < messages)
      ucp_worker_progress(worker.handle());
  }
};

ucs_status_t on_message(void* self, const void*, std::size_t, void* data, std::size_t,
                        const ucp_am_recv_param_t*) {
  auto& here = *static_cast<side*>(self);
  here.arrived_ns = monotonic_ns();
  std::memcpy(&here.stamp_ns, data, sizeof here.stamp_ns);
  ++here.received;
  return UCS_OK;
}

/// Rank 1 measures and answers each message with the latency of it.
summary run(bootstrap& job, side& here, std::size_t messages, std::uint64_t gap_ns) {
  std::vector<double> latencies_us;
  auto next_ns = monotonic_ns();
  here.received = 0;
  job.allgather({});
  for (std::size_t i = 0; i < warm_up_messages + messages; ++i) {
    if (job.rank().value == 0) {
      while (monotonic_ns() < next_ns)
        ucp_worker_progress(here.worker.handle());
      next_ns = monotonic_ns() + gap_ns;
      here.send(monotonic_ns());
      here.await(i + 1);
      if (i >= warm_up_messages)
        latencies_us.push_back(static_cast<double>(here.stamp_ns) / 1000.0);
    } else {
      here.await(i + 1);
      here.send(here.arrived_ns - here.stamp_ns);
    }
  }
  return summarise(latencies_us);
}

} // namespace

raw_ucx_result measure_raw_ucx(bootstrap& job) {
  side here;
  check(here.worker.open().has_value(), "UCX does not start");
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message_id;
  handler.cb = on_message;
  handler.arg = &here;
  check(ucp_worker_set_am_recv_handler(here.worker.handle(), &handler) == UCS_OK, "no AM");
  const auto addresses = job.allgather(here.worker.address().value()).value();
  here.peer = here.worker.connect(addresses[1 - job.rank().value]).value();
  raw_ucx_result result;
  result.ping_pong = run(job, here, ping_pong_messages, 0);
  result.paced = run(job, here, paced_messages, pace_ns);
  job.allgather({});
  return result;
}

} // namespace tokenrouter::bench
