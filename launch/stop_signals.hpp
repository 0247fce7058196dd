#pragma once

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// SIGTERM and SIGINT of this process, from `install` on. The first asks for an orderly end, the
/// second ends the process at once with 128 + its number. One in a process.
class stop_signals {
 public:
  static result<void> install();

  /// Blocks until the first signal, or `wake_up`. The signal's number, or 0.
  static int wait();

  /// Any thread: ends `wait`.
  static void wake_up();
};

} // namespace tokenrouter
