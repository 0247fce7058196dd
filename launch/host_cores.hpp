#pragma once

#include <cstdint>
#include <vector>

namespace tokenrouter {

/// What hwloc knows of the cores of this host.
struct host_cores {
  std::uint32_t host_threads = 0;   ///< hardware threads of the host; 0: not known
  std::uint32_t physical_cores = 0; ///< that the given ones lie on
};

/// `allowed`: hardware threads by number, as the operating system counts them.
host_cores look_at_cores(const std::vector<int>& allowed);

} // namespace tokenrouter
