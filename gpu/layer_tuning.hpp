#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/forward.hpp"
#include "gpu/wave_buffers.hpp"

namespace tokenrouter::gpu {

struct kv_pool {
  std::byte* data;
  std::uint32_t blocks;
};

/// Finds whether the layers are best run as one kernel, for every number of rows that graphs are
/// made for, by waves of single tokens with contexts of 1024. Writes to the pool. Models or pools
/// too small for that keep what they have.
void tune_layers(forward_pass& pass, wave_buffers& buffers, const wave_limits& limits,
                 const model_config& config, const kv_pool& pool, cudaStream_t stream);

} // namespace tokenrouter::gpu
