#include "gpu/load_facts.hpp"

#include <string>

#include <cuda_runtime_api.h>

#include "runtime/exec/load_contract.hpp"

namespace tokenrouter::gpu {
namespace {

constexpr std::uint32_t head_dim_max = 512;

} // namespace

result<taken_card> take_device(std::uint32_t device) {
  const std::string name = "cuda:" + std::to_string(device);
  cudaSetDeviceFlags(cudaDeviceScheduleSpin); // ignored if the device is in use already
  cudaDeviceProp facts{};
  if (const auto status = cudaSetDevice(static_cast<int>(device)); status != cudaSuccess)
    return fail(errc::unavailable, name + ": " + cudaGetErrorString(status));
  if (const auto status = cudaGetDeviceProperties(&facts, static_cast<int>(device));
      status != cudaSuccess)
    return fail(errc::unavailable, name + ": " + cudaGetErrorString(status));
  taken_card taken{.facts = {.device = device,
                             .name = facts.name,
                             .major = static_cast<std::uint32_t>(facts.major),
                             .minor = static_cast<std::uint32_t>(facts.minor),
                             .shared_bytes_of_block = facts.sharedMemPerBlockOptin},
                   .processors = static_cast<std::uint32_t>(facts.multiProcessorCount),
                   .target = kernel_target::portable};
  const auto loading = find_kernel_target(taken.target);
  if (const auto fault = fault_of(taken.facts, loading, TOKENROUTER_CUDA_TARGETS))
    return fail(errc::unavailable, *fault);
  return taken;
}

result<model_config> read_config(const load_options& options) {
  auto config = load_fitting_config(options);
  if (!config)
    return config;
  if (config->head_dim > head_dim_max || config->head_dim % 2 != 0)
    return fail(errc::mismatch, options.model_path.string() + ": head_dim " +
                                    std::to_string(config->head_dim) +
                                    " must be even and at most " + std::to_string(head_dim_max));
  if (config->hidden_size % 4 != 0)
    return fail(errc::mismatch, options.model_path.string() + ": hidden_size " +
                                    std::to_string(config->hidden_size) +
                                    " is no multiple of 4, as kernels on a GPU need it");
  return config;
}

} // namespace tokenrouter::gpu
