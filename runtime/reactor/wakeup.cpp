#include "runtime/reactor/wakeup.hpp"

#include <array>
#include <cerrno>
#include <ctime>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;
constexpr std::int64_t ns_per_ms = 1'000'000;

int wait_on(int epoll_fd, epoll_event* events, int events_max, std::int64_t timeout_ns) {
  const timespec limit{static_cast<time_t>(timeout_ns / ns_per_s),
                       static_cast<long>(timeout_ns % ns_per_s)};
  const int n =
      epoll_pwait2(epoll_fd, events, events_max, timeout_ns < 0 ? nullptr : &limit, nullptr);
  if (n >= 0 || errno != ENOSYS)
    return n;
  // Kernels before 5.11: whole milliseconds, rounded up so that no timer is missed by a hair.
  const auto ms = timeout_ns < 0 ? -1 : (timeout_ns + ns_per_ms - 1) / ns_per_ms;
  return epoll_wait(epoll_fd, events, events_max, static_cast<int>(ms > 60'000 ? 60'000 : ms));
}

} // namespace

wakeup::wakeup()
    : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)), bell_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  check(epoll_fd_ >= 0 && bell_fd_ >= 0, "no file descriptors left for the reactor");
  watch(bell_fd_);
}

wakeup::~wakeup() {
  close(bell_fd_);
  close(epoll_fd_);
}

void wakeup::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  check(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0, "a watched descriptor is invalid");
}

void wakeup::unwatch(int fd) {
  check(epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr) == 0, "descriptor was not watched");
}

void wakeup::ring() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the bell is ringing already.
  [[maybe_unused]] const auto written = write(bell_fd_, &one, sizeof one);
}

void wakeup::wait(std::int64_t timeout_ns) {
  std::array<epoll_event, 8> events;
  const int n = wait_on(epoll_fd_, events.data(), static_cast<int>(events.size()), timeout_ns);
  check(n >= 0 || errno == EINTR, "epoll failed");
  for (int i = 0; i < n; ++i)
    if (events[static_cast<std::size_t>(i)].data.fd == bell_fd_) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto drained = read(bell_fd_, &count, sizeof count);
    }
}

} // namespace tokenrouter
