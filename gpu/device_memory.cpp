#include "gpu/device_memory.hpp"

#include <cuda_runtime_api.h>

#include <string>

namespace tokenrouter::gpu {

device_memory::~device_memory() {
  // A failure here can only repeat an earlier one, which has been reported.
  if (data_ && pinned_)
    cudaFreeHost(data_);
  else if (data_)
    cudaFree(data_);
}

result<device_memory> device_memory::allocate(std::size_t bytes) {
  device_memory m;
  const auto status = cudaMalloc(&m.data_, bytes);
  if (status != cudaSuccess) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    return fail(errc::capacity, "cannot allocate " + std::to_string(bytes) +
                                    " bytes of device memory (" + std::to_string(free) + " of " +
                                    std::to_string(total) +
                                    " are free): " + cudaGetErrorString(status));
  }
  m.bytes_ = bytes;
  return m;
}

result<device_memory> device_memory::allocate_pinned(std::size_t bytes) {
  device_memory m;
  m.pinned_ = true;
  const auto status = cudaMallocHost(&m.data_, bytes);
  if (status != cudaSuccess) {
    cudaGetLastError();
    return fail(errc::capacity, "cannot allocate " + std::to_string(bytes) +
                                    " bytes of pinned host memory: " + cudaGetErrorString(status));
  }
  m.bytes_ = bytes;
  return m;
}

} // namespace tokenrouter::gpu
