#include "gpu/card_check.hpp"

#include "gpu/devices.hpp"

namespace tokenrouter::gpu {

std::optional<std::string> fault_of(const card& c, cudaError_t loading,
                                    std::string_view built_for) {
  const std::string capability = std::to_string(c.major) + "." + std::to_string(c.minor);
  const std::string who =
      "cuda:" + std::to_string(c.device) + ": " + c.name + " has compute capability " + capability;
  const std::string code = std::to_string(c.major) + std::to_string(c.minor);
  const std::string built = "this build was configured for " + std::string(built_for);
  const std::string rebuild = "configure it with " + code + " in TOKENROUTER_CUDA_ARCHITECTURES";
  if (c.major < gpu_major_min)
    return who + ", and models need " + std::to_string(gpu_major_min) +
           ".0 or newer; choose another GPU or device: cpu";
  switch (loading) {
  case cudaSuccess:
    break;
  case cudaErrorNoKernelImageForDevice:
  case cudaErrorInvalidDeviceFunction:
    return who + ", for which there are no kernels: " + built + "; " + rebuild +
           ", or with 80-virtual, which fits any newer card";
  case cudaErrorUnsupportedPtxVersion:
  case cudaErrorInvalidPtx:
  case cudaErrorJitCompilerNotFound:
  case cudaErrorJitCompilationDisabled:
    return who + ", for which the driver can't compile the kernels (" +
           cudaGetErrorString(loading) + "): " + built + "; update the driver, or " + rebuild;
  default:
    return who + "; its kernels can't be loaded: " + cudaGetErrorString(loading);
  }
  if (c.shared_bytes_of_block < shared_bytes_everywhere)
    return who + " and gives a thread block " + std::to_string(c.shared_bytes_of_block / 1024) +
           " KiB of shared memory, where kernels need " +
           std::to_string(shared_bytes_everywhere / 1024) + "; choose another GPU or device: cpu";
  return std::nullopt;
}

std::string kernels_name(const card& c, kernel_target target) {
  return "cuda sm_" + std::to_string(c.major) + std::to_string(c.minor) +
         (has_sm_90(target) ? "" : ", portable kernels");
}

} // namespace tokenrouter::gpu
