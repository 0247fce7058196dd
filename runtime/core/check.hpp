#pragma once

#include <source_location>

namespace tokenrouter {

/// Reports a programmer's fault on stderr and aborts. Never returns.
[[noreturn]] void check_failed(const char* what, std::source_location where);

/// Stops the program when `ok` is false, in every build. For faults of our own code only; what a
/// user, peer or file can cause is an `error`.
inline void check(bool ok, const char* what,
                  std::source_location where = std::source_location::current()) {
  if (!ok) [[unlikely]]
    check_failed(what, where);
}

} // namespace tokenrouter
