#pragma once

#include <string>

#include <cuda_runtime_api.h>

namespace tokenrouter::gpu {

/// Stops the program with the runtime's own words when a call fails that can only fail by a fault
/// of ours or of the device in the middle of a step.
void cuda_check(cudaError_t status);

} // namespace tokenrouter::gpu
