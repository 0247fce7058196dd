#pragma once

#include "gpu/kernels/skinny_product.hpp"

namespace tokenrouter::gpu {

inline constexpr std::uint32_t warpgroup_rows_max = 64;

/// Products of few rows whose weights are on their way to shared memory before the kernel in front
/// has ended. 64 columns for each thread block; `parts` of them, a cluster, share k.
/// Requires bf16 without `residual`, rows ≤ warpgroup_rows_max, columns % 64 == 0,
/// k % (64 · parts) == 0, parts 1, 2, 4 or, but for swiglu, 8; wgmma_runs_here().
void warpgroup_product(const skinny_call& call, product_output output, std::uint32_t parts,
                       cudaStream_t stream);

/// Lets kernels take the shared memory they need; once for each device.
void prepare_warpgroup_products();

} // namespace tokenrouter::gpu
