#pragma once

#include <cstdint>

#include "runtime/core/error.hpp"
#include "runtime/exec/cpu/kernels.hpp"
#include "runtime/exec/cpu/kv_layout.hpp"
#include "runtime/exec/cpu/memory.hpp"
#include "runtime/exec/cpu/rope_table.hpp"
#include "runtime/exec/cpu/thread_pool.hpp"
#include "runtime/exec/cpu/wave.hpp"
#include "runtime/exec/cpu/weights.hpp"
#include "runtime/exec/model_config.hpp"

namespace tokenrouter::cpu {

/// The layers of a model over one wave of tokens. Owns the activations; reads weights and writes
/// the KV pool that others own.
class forward_pass {
 public:
  /// All references must outlive this. Error: capacity.
  static result<forward_pass> create(const model_config& config, const model_weights& weights,
                                     const kernel_table& kernels, const kv_layout& layout,
                                     std::uint32_t threads);

  const kv_layout& layout() const { return layout_; }

  /// Runs all layers; every worker of the pool calls it. On return each worker may read
  /// residual(t), and the KV of the wave's tokens is written. `pool`: blocks of layout().
  void run(worker& w, const wave& tokens, std::byte* pool);

  /// [hidden] of token t before the final norm.
  const float* residual(std::uint32_t token) const;

  /// All activations, for tests that fill them.
  memory& activations() { return activations_; }

 private:
  forward_pass(const model_config& config, const model_weights& weights,
               const kernel_table& kernels, const kv_layout& layout);
  void attention(worker& w, std::uint32_t layer, const wave& tokens, std::byte* pool);
  void attend_tile(const wave& tokens, const wave_tile& tile, std::uint32_t layer,
                   std::uint32_t kv_head, std::uint32_t worker_index, const std::byte* pool);
  void rotate(std::uint32_t layer, const wave_token& token, std::uint32_t index, std::byte* pool);
  void mlp(worker& w, std::uint32_t layer, std::uint32_t tokens);
  void norm_rows(worker& w, const float* weight, std::uint32_t tokens);
  void product(worker::range panels, const matrix& m, const float* operand,
               std::size_t operand_stride, std::uint32_t rows, float* out, std::size_t out_stride,
               bool accumulate) const;

  const model_config* config_;
  const model_weights* weights_;
  const kernel_table* kernels_;
  std::size_t kind_; ///< index into the kernels' pairs
  kv_layout layout_;
  rope_table rope_;
  float scale_; ///< of attention scores

  // Rows of `activations_`, a stride of floats apart.
  std::size_t hidden_stride_;
  std::size_t qkv_stride_;
  std::size_t q_stride_;
  std::size_t mlp_stride_;
  std::size_t wide_stride_; ///< of the larger of attention output and MLP
  memory activations_;
  float* residual_ = nullptr; ///< [wave_tokens_max][hidden]
  float* normed_ = nullptr;   ///< operand rows [..][hidden]
  float* qkv_ = nullptr;
  float* q_ = nullptr;    ///< rotated queries
  float* wide_ = nullptr; ///< operand rows: attention output, then MLP
  float* gate_up_ = nullptr;
  float* cosines_ = nullptr; ///< [..][head_dim / 2]
  float* sines_ = nullptr;
  float* scratch_ = nullptr; ///< [threads][attention_queries_max][padded(head_dim)]
};

} // namespace tokenrouter::cpu
