#pragma once

#include <cstddef>
#include <vector>

#include <cuda_runtime_api.h>

#include "gpu/cuda_error.hpp"
#include "gpu/device_memory.hpp"

namespace tokenrouter::test {

/// Throws where there is no room.
inline gpu::device_memory allocate(std::size_t bytes) {
  return gpu::device_memory::allocate(bytes).value();
}

template <class T>
gpu::device_memory copied(const std::vector<T>& from) {
  auto to = allocate(from.size() * sizeof(T));
  gpu::cuda_check(cudaMemcpy(to.as(), from.data(), to.bytes(), cudaMemcpyHostToDevice));
  return to;
}

} // namespace tokenrouter::test
