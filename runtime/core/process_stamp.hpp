#pragma once

#include <cstdint>
#include <random>

namespace tokenrouter {

/// Drawn when it is first asked for; tells this process from all others. A process number alone
/// does not: it comes again. Any thread.
inline std::uint64_t process_stamp() {
  static const std::uint64_t drawn = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }();
  return drawn;
}

} // namespace tokenrouter
