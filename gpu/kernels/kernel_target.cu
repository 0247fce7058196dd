#include "gpu/kernels/kernel_target.hpp"

#include <array>
#include <atomic>

#include "gpu/cuda_error.hpp"
#include "gpu/kernels/kernel_target.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr int warp_threads = 32;

/// Its largest thread block tells the host the target: machine code of CUDA 13 does not say what
/// PTX it was made from, so that the runtime's ptxVersion can't either.
__global__ void __launch_bounds__((static_cast<int>(compiled_for) + 1) * warp_threads)
    target_kernel(kernel_target* out) {
  *out = compiled_for;
}

constexpr int devices_remembered = 64;
std::array<std::atomic<std::uint8_t>, devices_remembered> targets{}; ///< 1 + target; 0: not asked

} // namespace

cudaError_t find_kernel_target(kernel_target& out) {
  int device = 0;
  if (const auto status = cudaGetDevice(&device); status != cudaSuccess)
    return status;
  const bool remembered = device < devices_remembered;
  const auto known =
      remembered ? targets[static_cast<std::size_t>(device)].load(std::memory_order_relaxed) : 0;
  if (known > 0) {
    out = static_cast<kernel_target>(known - 1);
    return cudaSuccess;
  }
  cudaFuncAttributes facts{};
  const auto status = cudaFuncGetAttributes(&facts, reinterpret_cast<const void*>(target_kernel));
  if (status != cudaSuccess) {
    cudaGetLastError(); // the caller has it
    return status;
  }
  const int level = facts.maxThreadsPerBlock / warp_threads - 1;
  out = level == 1   ? kernel_target::sm_90
        : level == 2 ? kernel_target::sm_90a
                     : kernel_target::portable; // safe for any code
  if (remembered)
    targets[static_cast<std::size_t>(device)].store(
        static_cast<std::uint8_t>(static_cast<int>(out) + 1), std::memory_order_relaxed);
  return cudaSuccess;
}

kernel_target target_here() {
  kernel_target target{};
  cuda_check(find_kernel_target(target));
  return target;
}

bool wgmma_runs_here() {
  kernel_target target{};
  return find_kernel_target(target) == cudaSuccess && has_wgmma(target);
}

kernel_target target_that_runs() {
  kernel_target* on_device = nullptr;
  kernel_target target{};
  cuda_check(cudaMalloc(&on_device, sizeof target));
  target_kernel<<<1, 1>>>(on_device);
  cuda_check(cudaGetLastError());
  cuda_check(cudaMemcpy(&target, on_device, sizeof target, cudaMemcpyDeviceToHost));
  cuda_check(cudaFree(on_device));
  return target;
}

} // namespace tokenrouter::gpu
