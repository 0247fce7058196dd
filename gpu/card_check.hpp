#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

#include "gpu/kernels/kernel_target.hpp"

/// Whether a card can run the kernels of a build, and how; pure host code.
namespace tokenrouter::gpu {

struct card {
  std::uint32_t device; ///< cuda:N
  std::string name;
  std::uint32_t major; ///< compute capability
  std::uint32_t minor;
  std::size_t shared_bytes_of_block; ///< at most, when asked for
};

/// What keeps the kernels from running, with what to do about it. `loading`: what
/// find_kernel_target answered; `built_for`: the
/// architectures that the build was configured for.
std::optional<std::string> fault_of(const card& c, cudaError_t loading, std::string_view built_for);

/// What a model's log tells: "cuda sm_90", "cuda sm_80, portable kernels".
std::string kernels_name(const card& c, kernel_target target);

} // namespace tokenrouter::gpu
