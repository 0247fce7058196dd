#include "gpu/device_quiet.hpp"

#include <map>
#include <mutex>

namespace tokenrouter::gpu {

std::shared_mutex& quiet_of(std::uint32_t device) {
  static std::mutex guard;
  static std::map<std::uint32_t, std::shared_mutex> devices;
  const std::lock_guard lock(guard);
  return devices[device];
}

} // namespace tokenrouter::gpu
