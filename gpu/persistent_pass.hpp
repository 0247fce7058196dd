#pragma once

#include <cstdint>
#include <map>

#include <cuda_runtime_api.h>

#include "gpu/device_memory.hpp"
#include "gpu/kernels/persistent_layers.hpp"
#include "gpu/kv_shape.hpp"
#include "gpu/model_weights.hpp"
#include "gpu/wave_buffers.hpp"
#include "runtime/core/error.hpp"
#include "runtime/exec/model_config.hpp"

namespace tokenrouter::gpu {

persistent_shape persistent_shape_of(const model_config& config);

/// Device memory that a persistent pass takes; 0 for models that it does not take.
std::uint64_t persistent_bytes(const model_config& config, compute_type compute,
                               std::uint32_t processors);

/// All layers over a wave of few tokens as one kernel; a model, a device or a number of tokens for
/// which that can't be or is slower goes the other way. Owns what its thread blocks exchange.
class persistent_pass {
 public:
  persistent_pass() = default; ///< takes nothing

  /// `rope`, `residual`: as activations. Errors: capacity.
  static result<persistent_pass> create(const model_config& config, const model_weights& weights,
                                        const kv_shape& kv, const float* rope, float* residual,
                                        std::uint32_t processors, cudaStream_t stream);

  std::uint64_t bytes() const { return memory_.bytes(); }

  /// Whether such a wave can be run.
  bool fits(std::uint32_t tokens) const;

  /// Whether such a wave is best run this way: until `prefer` says otherwise, if it can be.
  bool takes(std::uint32_t tokens) const;
  void prefer(std::uint32_t tokens, bool preferred) { preferred_[tokens] = preferred; }

  /// Enqueues all layers. Requires fits(tokens) and a wave without tiles.
  void run(const device_wave& wave, std::uint32_t tokens, void* pool, cudaStream_t stream) const;

 private:
  persistent_call call_{};
  std::uint32_t blocks_ = 0; ///< 0: takes nothing
  device_memory memory_;
  std::map<std::uint32_t, bool> preferred_; ///< by the largest number of tokens
};

} // namespace tokenrouter::gpu
