#include "gpu/devices.hpp"

#if TOKENROUTER_HAS_CUDA
#include <cuda_runtime_api.h>
#endif

namespace tokenrouter {

#if TOKENROUTER_HAS_CUDA

result<std::vector<gpu_device>> list_gpus() {
  int count = 0;
  if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess)
    return fail(errc::unavailable, std::string("no GPU: ") + cudaGetErrorString(status));
  std::vector<gpu_device> devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp facts{};
    if (const auto status = cudaGetDeviceProperties(&facts, i); status != cudaSuccess)
      return fail(errc::unavailable,
                  "cuda:" + std::to_string(i) + ": " + cudaGetErrorString(status));
    devices.push_back({facts.name, facts.totalGlobalMem, static_cast<std::uint32_t>(facts.major),
                       static_cast<std::uint32_t>(facts.minor)});
  }
  return devices;
}

#else

result<std::vector<gpu_device>> list_gpus() {
  return fail(errc::unavailable, "no GPU: this program was built without CUDA");
}

#endif

} // namespace tokenrouter
