#pragma once

#include <cstdint>

namespace tokenrouter {

/// What a thread sleeps on: any number of watched descriptors, and a bell that other threads ring.
class wakeup {
 public:
  /// Stops the program if the kernel has no descriptors left.
  wakeup();
  ~wakeup();
  wakeup(const wakeup&) = delete;
  wakeup& operator=(const wakeup&) = delete;

  /// Sleeping thread: adds or removes a descriptor that ends a sleep when it is readable.
  void watch(int fd);
  void unwatch(int fd);

  /// Any thread: ends the sleep in progress or, if there is none, the next one at once.
  void ring();

  /// Sleeping thread: returns when something is readable, the bell rang or the time is up.
  /// `timeout_ns` < 0: no limit.
  void wait(std::int64_t timeout_ns);

 private:
  int epoll_fd_;
  int bell_fd_;
};

} // namespace tokenrouter
