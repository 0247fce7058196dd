#include "gpu/forward.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <cuda_bf16.h>

#include "gpu/arena.hpp"
#include "gpu/cuda_error.hpp"
#include "gpu/kernels/kernel_target.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/recorded_work.hpp"

namespace tokenrouter::gpu {
namespace {

/// Thread blocks of piece attention for each processor: as many as run at once.
constexpr std::uint32_t attention_blocks_per_processor = 2;

/// Layers whose matrices are measured together, so that few of their bytes stay in the cache.
constexpr std::size_t layers_tuned = 12;

activations lay_out(arena& memory, const model_config& c, compute_type compute,
                    const wave_limits& limits, const attention_plan& plan) {
  const std::size_t element = element_bytes(compute), tokens = limits.tokens_max;
  const auto operands = [&](std::size_t columns) {
    return memory.take(tokens * columns * element);
  };
  activations a{};
  a.residual = memory.take<float>(tokens * c.hidden_size);
  a.normed = operands(c.hidden_size);
  a.qkv = operands(std::size_t{c.heads + 2 * c.kv_heads} * c.head_dim);
  a.q = operands(std::size_t{c.heads} * c.head_dim);
  a.attended = operands(std::size_t{c.heads} * c.head_dim);
  a.gated = operands(c.intermediate_size);
  a.gate_up = operands(2 * std::size_t{c.intermediate_size});
  a.rope = memory.take<float>(std::size_t{c.context_tokens_max} * c.head_dim);
  if (plan.fast) {
    const std::size_t rows = std::size_t{partials_max(plan)} * c.kv_heads * 16;
    a.pieces.sums = memory.take<float>(rows * c.head_dim);
    a.pieces.bounds = memory.take<float>(rows * 2);
    a.pieces.left = memory.take<unsigned>(tokens * c.kv_heads);
  }
  return a;
}

} // namespace

std::uint64_t activation_bytes(const model_config& config, compute_type compute,
                               const wave_limits& limits, std::uint32_t processors) {
  arena counter(nullptr);
  lay_out(counter, config, compute, limits, attention_plan_of(config, compute, processors, true));
  return counter.used() + persistent_bytes(config, compute, processors);
}

attention_plan attention_plan_of(const model_config& c, compute_type compute,
                                 std::uint32_t processors, bool one_kernel) {
  const bool fast =
      compute == compute_type::bfloat16 && fast_attention_fits(c.heads, c.kv_heads, c.head_dim);
  const bool pieces = one_kernel && persistent_bytes(c, compute, processors) > 0;
  return {.fast = fast,
          .pieces = pieces,
          .unit_tokens = fast || pieces ? unit_tokens(c.heads, c.kv_heads) : 1,
          .tile_tokens = fast && wgmma_runs_here()
                             ? static_cast<std::uint32_t>(warpgroup_tile_tokens)
                             : static_cast<std::uint32_t>(tile_tokens),
          .kv_heads = c.kv_heads,
          .processors = processors};
}

forward_pass::forward_pass(const model_config& config, const model_weights& weights,
                           const kv_shape& kv, const wave_limits& limits, std::uint32_t processors,
                           bool one_kernel, communicator* group)
    : config_(&config), weights_(&weights), group_(group), kv_(kv),
      attention_(attention_plan_of(config, weights.compute, processors, one_kernel)),
      processors_(processors), limits_(limits) {}

result<forward_pass> forward_pass::create(const model_config& c, const model_weights& weights,
                                          const kv_shape& kv, const wave_limits& limits,
                                          std::uint32_t processors, bool one_kernel,
                                          communicator* group, cudaStream_t stream) {
  one_kernel = one_kernel && !group; // shards meet inside a layer
  forward_pass pass(c, weights, kv, limits, processors, one_kernel, group);
  arena counter(nullptr);
  lay_out(counter, c, weights.compute, limits, pass.attention_);
  auto memory = device_memory::allocate(counter.used());
  if (!memory)
    return tl::unexpected(memory.error());
  pass.memory_ = std::move(*memory);
  arena filled(pass.memory_.as());
  pass.a_ = lay_out(filled, c, weights.compute, limits, pass.attention_);
  cuda_check(cudaMemsetAsync(pass.memory_.as(), 0, pass.memory_.bytes(), stream));

  const auto& frequencies = c.rope_inverse_frequencies;
  auto steps = device_memory::allocate(frequencies.size() * sizeof(double));
  if (!steps)
    return tl::unexpected(steps.error());
  cuda_check(cudaMemcpy(steps->as(), frequencies.data(), frequencies.size() * sizeof(double),
                        cudaMemcpyHostToDevice));
  fill_rope_table(steps->as<double>(), static_cast<std::uint32_t>(frequencies.size()),
                  c.context_tokens_max, pass.a_.rope, stream);
  if (one_kernel) {
    auto persistent =
        persistent_pass::create(c, weights, kv, pass.a_.rope, pass.a_.residual, processors, stream);
    if (!persistent)
      return tl::unexpected(persistent.error());
    pass.persistent_ = std::move(*persistent);
  }
  cuda_check(cudaStreamSynchronize(stream));
  if (pass.attention_.fast)
    prepare_attention();
  auto made = products::create(weights.compute, pass.a_.gate_up, processors);
  if (!made)
    return tl::unexpected(made.error());
  pass.products_ = std::move(*made);
  return pass;
}

void forward_pass::tune(std::uint32_t tokens, cudaStream_t stream) {
  const auto tune_kind = [&](matrix layer_weights::*kind, product_output output, bool normed,
                             const void* x, void* y) {
    std::vector<matrix> sample;
    for (const auto& layer : weights_->layers)
      if (sample.size() < layers_tuned)
        sample.push_back(layer.*kind);
    const product_input input{x, normed ? a_.residual : nullptr,
                              normed ? weights_->final_norm : nullptr, config_->rms_norm_eps};
    products_.tune(sample, tokens, output, input, y, stream);
  };
  tune_kind(&layer_weights::qkv, product_output::operand, true, a_.normed, a_.qkv);
  tune_kind(&layer_weights::attention_out, residual_output(), false, a_.attended, a_.residual);
  tune_kind(&layer_weights::gate_up, product_output::swiglu, true, a_.normed, a_.gated);
  tune_kind(&layer_weights::down, residual_output(), false, a_.gated, a_.residual);
}

void forward_pass::meet_shards(cudaStream_t stream) {
  if (!group_)
    return;
  const std::size_t each = config_->hidden_size / group_->count();
  group_->sum(a_.residual, config_->hidden_size, stream);
  group_->gather(a_.residual, each, stream);
}

void forward_pass::tune_layers(const device_wave& wave, std::uint32_t tokens, void* pool,
                               cudaStream_t stream) {
  if (!persistent_.fits(tokens))
    return;
  const auto measure = [&](bool persistent) {
    persistent_.prefer(tokens, persistent);
    return measure_us(stream, [&] { run(wave, tokens, 0, true, pool, stream); });
  };
  const double kernels_us = measure(false), one_us = measure(true);
  persistent_.prefer(tokens, one_us < kernels_us);
}

void forward_pass::run(const device_wave& wave, std::uint32_t tokens, std::uint32_t tiles,
                       bool has_pieces, void* pool, cudaStream_t stream) {
  if (tiles == 0 && persistent_.takes(tokens))
    persistent_.run(wave, tokens, pool, stream);
  else if (weights_->compute == compute_type::bfloat16)
    run_layers<__nv_bfloat16>(wave, tokens, tiles, has_pieces, pool, stream);
  else
    run_layers<float>(wave, tokens, tiles, has_pieces, pool, stream);
}

template <class T>
void forward_pass::normed_product(const matrix& m, const float* norm, std::uint32_t tokens,
                                  product_output output, void* y, cudaStream_t stream) {
  const bool fused = products_.norms_itself(m, tokens, output, true);
  if (!fused)
    norm_rows({.residual = a_.residual,
               .weight = norm,
               .gather = nullptr,
               .rows = tokens,
               .hidden = config_->hidden_size,
               .eps = config_->rms_norm_eps,
               .exact = nullptr},
              static_cast<T*>(a_.normed), stream);
  products_.run(m, tokens, output,
                {a_.normed, fused ? a_.residual : nullptr, norm, config_->rms_norm_eps}, y, stream);
}

/// Of products that add to the residual stream: one shard adds to it, the others' parts replace it,
/// so that the sum over all is the stream once and every part once.
product_output forward_pass::residual_output() const {
  return group_ && group_->index() > 0 ? product_output::exact : product_output::residual;
}

void forward_pass::add_to_residual(const matrix& m, std::uint32_t tokens, const void* x,
                                   cudaStream_t stream) {
  products_.run(m, tokens, residual_output(), {.x = x}, a_.residual, stream);
  if (group_)
    group_->sum(a_.residual, std::size_t{tokens} * config_->hidden_size, stream);
}

template <class T>
void forward_pass::attend(const device_wave& wave, std::uint32_t layer, std::uint32_t tokens,
                          std::uint32_t tiles, bool has_pieces, void* pool, cudaStream_t stream) {
  const auto& c = *config_;
  const auto& w = weights_->layers[layer];
  const std::uint64_t keys = 2 * kv_.side * layer, values = keys + kv_.side;
  rotate_and_store<T>({.qkv = a_.qkv,
                       .q_norm = w.q_norm,
                       .k_norm = w.k_norm,
                       .rope = a_.rope,
                       .positions = wave.positions,
                       .slots = wave.slots,
                       .tokens = tokens,
                       .heads = c.heads,
                       .kv_heads = c.kv_heads,
                       .head_dim = c.head_dim,
                       .eps = c.rms_norm_eps,
                       .q = a_.q,
                       .pool = pool,
                       .block_elements = kv_.block,
                       .key_offset = keys,
                       .value_offset = values},
                      stream);
  const attention_call call{
      .q = a_.q,
      .kv = {pool, kv_.block, keys, values},
      .tables = wave.tables,
      .heads = c.heads,
      .kv_heads = c.kv_heads,
      .head_dim = c.head_dim,
      .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim))),
      .out = a_.attended};
  if (!attention_.fast) {
    plain_attention<T>(call, wave.positions, wave.tables_of, tokens, stream);
    return;
  }
  if (tiles > 0 && attention_.tile_tokens > tile_tokens)
    warpgroup_attention(call, wave.tiles, tiles, stream);
  else if (tiles > 0)
    tile_attention(call, wave.tiles, tiles, stream);
  if (has_pieces) {
    const std::uint32_t blocks = std::min(processors_ * attention_blocks_per_processor,
                                          pieces_max(tokens, attention_) * c.kv_heads);
    piece_attention(call, wave.pieces, wave.piece_count, a_.pieces, blocks, stream);
  }
}

template <class T>
void forward_pass::run_layers(const device_wave& wave, std::uint32_t tokens, std::uint32_t tiles,
                              bool has_pieces, void* pool, cudaStream_t stream) {
  embed(static_cast<const T*>(weights_->embedding.weight), wave.ids, tokens, config_->hidden_size,
        a_.residual, stream);
  for (std::uint32_t layer = 0; layer < config_->layers; ++layer) {
    const auto& w = weights_->layers[layer];
    normed_product<T>(w.qkv, w.input_norm, tokens, product_output::operand, a_.qkv, stream);
    attend<T>(wave, layer, tokens, tiles, has_pieces, pool, stream);
    add_to_residual(w.attention_out, tokens, a_.attended, stream);
    normed_product<T>(w.gate_up, w.post_norm, tokens, product_output::swiglu, a_.gated, stream);
    add_to_residual(w.down, tokens, a_.gated, stream);
  }
}

} // namespace tokenrouter::gpu
