#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// Of the compute capability of cards that models run on.
inline constexpr std::uint32_t gpu_major_min = 8;

struct gpu_device {
  std::string name;
  std::string id; ///< of the card (or part of one), whatever its number here
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0; ///< by the driver's management library; all, where there is none
  std::uint32_t major = 0;      ///< compute capability
  std::uint32_t minor = 0;
};

/// The CUDA devices this process sees, in the runtime's order; takes none of their memory. Errors:
/// unavailable (built without CUDA, or there is no driver; the message says which).
result<std::vector<gpu_device>> list_gpus();

} // namespace tokenrouter
