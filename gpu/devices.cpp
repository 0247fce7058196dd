#include "gpu/devices.hpp"

#if TOKENROUTER_HAS_CUDA
#include <cuda_runtime_api.h>

#include "gpu/loaded_library.hpp"
#endif

namespace tokenrouter {

#if TOKENROUTER_HAS_CUDA

namespace {

/// The driver's management library, which tells free memory without taking a context's worth of
/// it. It comes with the driver and its header does not, so what is used of it is declared here.
class management_library {
 public:
  management_library() {
    const gpu::loaded_library library({"libnvidia-ml.so.1"});
    if (!library)
      return;
    int (*init)() = nullptr;
    library.find("nvmlInit_v2", init);
    library.find("nvmlDeviceGetHandleByPciBusId_v2", find_device_);
    library.find("nvmlDeviceGetMemoryInfo", read_memory_);
    ready_ = init && find_device_ && read_memory_ && init() == 0;
  }

  /// Of the device with that PCI bus id; `otherwise` if it can't be told.
  std::uint64_t free_bytes(const char* bus_id, std::uint64_t otherwise) const {
    void* device = nullptr;
    memory_bytes memory{};
    if (!ready_ || find_device_(bus_id, &device) != 0 || read_memory_(device, &memory) != 0)
      return otherwise;
    return memory.free;
  }

 private:
  struct memory_bytes {
    unsigned long long total, free, used;
  };
  using find_device = int (*)(const char* bus_id, void** device);
  using read_memory = int (*)(void* device, memory_bytes* memory);

  find_device find_device_ = nullptr;
  read_memory read_memory_ = nullptr;
  bool ready_ = false;
};

} // namespace

result<std::vector<gpu_device>> list_gpus() {
  int count = 0;
  if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess)
    return fail(errc::unavailable, std::string("no GPU: ") + cudaGetErrorString(status));
  const management_library management;
  std::vector<gpu_device> devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp facts{};
    char bus_id[32] = {};
    auto status = cudaGetDeviceProperties(&facts, i);
    if (status == cudaSuccess)
      status = cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, i);
    if (status != cudaSuccess)
      return fail(errc::unavailable,
                  "cuda:" + std::to_string(i) + ": " + cudaGetErrorString(status));
    devices.push_back({facts.name,
                       {facts.uuid.bytes, sizeof facts.uuid.bytes},
                       facts.totalGlobalMem,
                       management.free_bytes(bus_id, facts.totalGlobalMem),
                       static_cast<std::uint32_t>(facts.major),
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
