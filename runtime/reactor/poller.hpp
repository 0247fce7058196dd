#pragma once

#include <cstddef>

namespace tokenrouter {

/// Something the reactor's loop looks at every turn, such as a transport. All calls come from the
/// loop's thread.
class poller {
 public:
  virtual ~poller() = default;

  /// Moves things along without blocking; returns how many events there were (0: nothing).
  virtual std::size_t poll() = 0;

  /// Becomes readable when `poll()` may have something to do; constant while attached. -1: there
  /// is none, and only `prepare_sleep()` keeps the loop awake.
  virtual int event_fd() const = 0;

  /// Called right before the loop sleeps. False: don't sleep, poll again. True: whatever arrives
  /// from now on makes `event_fd()` readable.
  virtual bool prepare_sleep() = 0;
};

} // namespace tokenrouter
