#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/device_memory.hpp"
#include "gpu/kernels/attention.hpp"
#include "gpu/kv_shape.hpp"
#include "gpu/model_weights.hpp"
#include "gpu/nccl/communicator.hpp"
#include "gpu/persistent_pass.hpp"
#include "gpu/products.hpp"
#include "gpu/wave_buffers.hpp"
#include "runtime/exec/model_config.hpp"

namespace tokenrouter::gpu {

/// How attention of a model is dealt out on a device; `one_kernel`: small waves may run as one.
attention_plan attention_plan_of(const model_config& config, compute_type compute,
                                 std::uint32_t processors, bool one_kernel = false);

/// What passes from kernel to kernel; for at most so many tokens as the limits say. "Operands" are
/// bf16 or float, as the model computes.
struct activations {
  float* residual; ///< [tokens][hidden]
  void* normed;    ///< operands [tokens][hidden]
  void* qkv;       ///< operands [tokens][(heads + 2 · kv_heads) · head_dim]
  void* q;         ///< rotated queries: operands [tokens][heads · head_dim]
  void* attended;  ///< likewise
  void* gated;     ///< operands [tokens][intermediate]
  void* gate_up;   ///< operands [tokens][2 · intermediate]
  float* rope;     ///< [context][head_dim]
  piece_memory pieces;
};

/// Device memory that a forward pass takes.
std::uint64_t activation_bytes(const model_config& config, compute_type compute,
                               const wave_limits& limits, std::uint32_t processors);

/// The layers of a model, or of a shard of one, over one wave. Owns the activations; weights and KV
/// are others'.
class forward_pass {
 public:
  /// References must outlive this. `one_kernel`: small waves may run as one; `group` is null for a
  /// model that is not split. Errors: capacity, unavailable.
  static result<forward_pass> create(const model_config& config, const model_weights& weights,
                                     const kv_shape& kv, const wave_limits& limits,
                                     std::uint32_t processors, bool one_kernel, communicator* group,
                                     cudaStream_t stream);

  const attention_plan& attention() const { return attention_; }
  std::uint64_t bytes() const { return memory_.bytes() + persistent_.bytes(); }

  /// Measures how to run the products of so many tokens; else they run by the library's guess.
  void tune(std::uint32_t tokens, cudaStream_t stream);

  /// Lets shards sum and gather once, of a model that is split.
  void meet_shards(cudaStream_t stream);

  /// Measures whether a wave of so many tokens is best run as one kernel; else it is, if it can be.
  /// `wave` is one without tiles, whose KV may hold anything and is written.
  void tune_layers(const device_wave& wave, std::uint32_t tokens, void* pool, cudaStream_t stream);

  /// Enqueues all layers. `tiles`: how many the wave has; with 0, everything but the pool depends
  /// on the bucket alone and may be captured.
  void run(const device_wave& wave, std::uint32_t tokens, std::uint32_t tiles, bool has_pieces,
           void* pool, cudaStream_t stream);

  /// [tokens][hidden] before the final norm.
  const float* residual() const { return a_.residual; }
  products& matrix_products() { return products_; }

 private:
  forward_pass(const model_config& config, const model_weights& weights, const kv_shape& kv,
               const wave_limits& limits, std::uint32_t processors, bool one_kernel,
               communicator* group);
  template <class T>
  void run_layers(const device_wave& wave, std::uint32_t tokens, std::uint32_t tiles,
                  bool has_pieces, void* pool, cudaStream_t stream);
  template <class T>
  void attend(const device_wave& wave, std::uint32_t layer, std::uint32_t tokens,
              std::uint32_t tiles, bool has_pieces, void* pool, cudaStream_t stream);
  template <class T>
  void normed_product(const matrix& m, const float* norm, std::uint32_t tokens,
                      product_output output, void* y, cudaStream_t stream);

  product_output residual_output() const;
  void add_to_residual(const matrix& m, std::uint32_t tokens, const void* x, cudaStream_t stream);

  const model_config* config_;
  const model_weights* weights_;
  communicator* group_;
  kv_shape kv_;
  attention_plan attention_;
  std::uint32_t processors_;
  wave_limits limits_;
  products products_;
  persistent_pass persistent_;
  device_memory memory_;
  activations a_{};
};

} // namespace tokenrouter::gpu
