#pragma once

#include "gpu/kernels/kernel_target.hpp"

namespace tokenrouter::gpu {

/// What device code is being compiled for; the host's pass knows nothing of it and reads portable.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr auto compiled_for = kernel_target::sm_90a;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr auto compiled_for = kernel_target::sm_90;
#else
constexpr auto compiled_for = kernel_target::portable;
#endif
constexpr bool compiled_for_sm_90 = has_sm_90(compiled_for);
constexpr bool compiled_for_wgmma = has_wgmma(compiled_for);

} // namespace tokenrouter::gpu
