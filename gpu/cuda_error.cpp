#include "gpu/cuda_error.hpp"

#include "runtime/core/check.hpp"

namespace tokenrouter::gpu {

void cuda_check(cudaError_t status) {
  check(status == cudaSuccess, cudaGetErrorString(status));
}

} // namespace tokenrouter::gpu
