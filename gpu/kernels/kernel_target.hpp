#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

/// What the kernels that run on a device may use. A build holds machine code for some cards and PTX
/// that the driver compiles for any other. Instructions that not every card has stand in the source
/// only for targets that have them, so that the host must know which code it is that runs: the
/// device's own capability does not tell.
namespace tokenrouter::gpu {

enum class kernel_target : std::uint8_t {
  portable, ///< compute capability 8.0
  sm_90,    ///< and newer: programmatic launches, clusters, bulk copies
  sm_90a,   ///< as sm_90, and wgmma; of 9.0 alone
};

constexpr bool has_sm_90(kernel_target t) {
  return t != kernel_target::portable;
}

constexpr bool has_wgmma(kernel_target t) {
  return t == kernel_target::sm_90a;
}

/// Whether a kernel may be told to start before the one in front of it has ended. Portable code
/// does not wait for it by itself: that would be a race.
constexpr bool starts_early(kernel_target t, bool cooperative, bool overlap) {
  return has_sm_90(t) && !cooperative && overlap;
}

/// Shared memory of a thread block that every card of 8.0 or newer gives when asked: kernels that
/// have to run everywhere take no more.
inline constexpr std::size_t shared_bytes_everywhere = 99 * 1024;

/// Of the current device; asked once of each, before anything is captured. An error is that of
/// loading a kernel: no code of the build fits, or the driver can't compile its PTX.
cudaError_t find_kernel_target(kernel_target& out);

/// The same where the kernels are known to load: checked.
kernel_target target_here();

/// Whether kernels with wgmma run on the current device; not where none can be loaded.
bool wgmma_runs_here();

/// For tests: what a kernel says that runs on the current device.
kernel_target target_that_runs();

} // namespace tokenrouter::gpu
