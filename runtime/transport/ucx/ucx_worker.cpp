#include "runtime/transport/ucx/ucx_worker.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

/// With the default of 64 a burst of small frames fills the queue and every send becomes pending,
/// which costs a third of the message rate. What the user set in the environment stays. By the
/// environment, because UCX 1.13 warns about transports' settings that come by ucp_config_modify.
void enlarge_queues() {
  for (const char* name : {"UCX_POSIX_FIFO_SIZE", "UCX_SYSV_FIFO_SIZE"})
    setenv(name, "256", 0);
}

} // namespace

error ucx_error(errc code, const std::string& what, ucs_status_t status) {
  return {code, what + ": UCX says \"" + ucs_status_string(status) + "\""};
}

result<void> ucx_worker::open() {
  enlarge_queues();
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return tl::unexpected(ucx_error(
        errc::unavailable, "can't read UCX's settings (environment variables UCX_…)", status));
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.name = "tokenrouter";
  const auto started = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  if (started != UCS_OK)
    return tl::unexpected(ucx_error(errc::unavailable, "can't start UCX", started));
  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (const auto status = ucp_worker_create(context_, &worker_params, &worker_); status != UCS_OK)
    return tl::unexpected(ucx_error(errc::unavailable, "can't make a UCX worker", status));
  int worker_fd = -1;
  if (const auto status = ucp_worker_get_efd(worker_, &worker_fd); status != UCS_OK)
    return tl::unexpected(
        ucx_error(errc::unavailable, "UCX has no descriptor to sleep on", status));
  event_fd_ = epoll_create1(EPOLL_CLOEXEC);
  timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  if (event_fd_ < 0 || timer_fd_ < 0 ||
      epoll_ctl(event_fd_, EPOLL_CTL_ADD, worker_fd, &event) != 0 ||
      epoll_ctl(event_fd_, EPOLL_CTL_ADD, timer_fd_, &event) != 0)
    return fail(errc::unavailable, "no file descriptors left for UCX; raise ulimit -n");
  return {};
}

bool ucx_worker::arm() {
  if (timer_armed_)
    set_timer(0);
  return ucp_worker_arm(worker_) == UCS_OK;
}

void ucx_worker::arm_timer(std::uint64_t ns) {
  set_timer(ns);
}

// Setting the time, even to never, also takes back an expiry that nobody has read.
void ucx_worker::set_timer(std::uint64_t ns) {
  itimerspec due{};
  due.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
  due.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  timerfd_settime(timer_fd_, 0, &due, nullptr);
  timer_armed_ = ns != 0;
}

ucx_worker::~ucx_worker() {
  if (timer_fd_ >= 0)
    ::close(timer_fd_);
  if (event_fd_ >= 0)
    ::close(event_fd_);
  if (worker_ != nullptr)
    ucp_worker_destroy(worker_);
  if (context_ != nullptr)
    ucp_cleanup(context_);
}

result<std::vector<std::byte>> ucx_worker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t address_bytes = 0;
  if (const auto status = ucp_worker_get_address(worker_, &address, &address_bytes);
      status != UCS_OK)
    return tl::unexpected(ucx_error(errc::unavailable, "UCX has no address for this rank", status));
  const auto* first = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> bytes(first, first + address_bytes);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

result<ucp_ep_h> ucx_worker::connect(std::span<const std::byte> address) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  ucp_ep_h endpoint = nullptr;
  if (const auto status = ucp_ep_create(worker_, &params, &endpoint); status != UCS_OK)
    return tl::unexpected(ucx_error(errc::unavailable,
                                    "no transport reaches that rank (see UCX_TLS, UCX_NET_DEVICES)",
                                    status));
  return endpoint;
}

std::string describe_endpoint(ucp_ep_h endpoint) {
  char* text = nullptr;
  std::size_t text_bytes = 0;
  std::FILE* stream = open_memstream(&text, &text_bytes);
  check(stream != nullptr, "out of memory");
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  std::istringstream lines(std::string(text, text_bytes));
  std::free(text);
  // A lane's line reads "# lane[0]: 3:posix/memory.0 md[2] -> md[2]/posix/… am am_bw#0".
  for (std::string line; std::getline(lines, line);) {
    const auto lane = line.find("lane[");
    const auto device = line.find('/');
    if (lane == std::string::npos || device == std::string::npos ||
        (line + ' ').find(" am ") == std::string::npos)
      continue;
    const auto first = line.find_last_of(": ", device) + 1;
    return "ucx " + line.substr(first, device - first);
  }
  return "ucx (connecting)";
}

} // namespace tokenrouter
