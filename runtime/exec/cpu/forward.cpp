#include "runtime/exec/cpu/forward.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/core/check.hpp"

namespace tokenrouter::cpu {

forward_pass::forward_pass(const model_config& config, const model_weights& weights,
                           const kernel_table& kernels, const kv_layout& layout)
    : config_(&config), weights_(&weights), kernels_(&kernels),
      kind_(static_cast<std::size_t>(weights.kind)), layout_(layout),
      rope_(config.rope_inverse_frequencies, config.context_tokens_max),
      scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)))),
      hidden_stride_(padded(config.hidden_size)),
      qkv_stride_(padded((config.heads + 2 * config.kv_heads) * config.head_dim)),
      q_stride_(padded(config.heads * config.head_dim)),
      mlp_stride_(padded(config.intermediate_size)),
      wide_stride_(std::max(q_stride_, mlp_stride_)) {}

result<forward_pass> forward_pass::create(const model_config& config, const model_weights& weights,
                                          const kernel_table& kernels, const kv_layout& layout,
                                          std::uint32_t threads) {
  forward_pass pass(config, weights, kernels, layout);
  const std::size_t pairs = padded(config.head_dim / 2);
  const std::size_t scratch = std::size_t{attention_queries_max} * padded(config.head_dim);
  const std::size_t row_floats = 2 * pass.hidden_stride_ + pass.qkv_stride_ + pass.q_stride_ +
                                 pass.wide_stride_ + 2 * pass.mlp_stride_ + 2 * pairs;
  auto memory =
      memory::allocate((wave_tokens_max * row_floats + threads * scratch) * sizeof(float));
  if (!memory)
    return tl::unexpected(memory.error());
  pass.activations_ = std::move(*memory);
  float* next = pass.activations_.floats();
  const auto take = [&](std::size_t floats) { return std::exchange(next, next + floats); };
  pass.residual_ = take(wave_tokens_max * pass.hidden_stride_);
  pass.normed_ = take(wave_tokens_max * pass.hidden_stride_);
  pass.qkv_ = take(wave_tokens_max * pass.qkv_stride_);
  pass.q_ = take(wave_tokens_max * pass.q_stride_);
  pass.wide_ = take(wave_tokens_max * pass.wide_stride_);
  pass.gate_up_ = take(wave_tokens_max * 2 * pass.mlp_stride_);
  pass.cosines_ = take(wave_tokens_max * pairs);
  pass.sines_ = take(wave_tokens_max * pairs);
  pass.scratch_ = take(threads * scratch);
  return pass;
}

const float* forward_pass::residual(std::uint32_t token) const {
  return residual_ + token * hidden_stride_;
}

void forward_pass::run(worker& w, const wave& tokens, std::byte* pool) {
  const auto count = static_cast<std::uint32_t>(tokens.tokens.size());
  check(count <= wave_tokens_max, "forward_pass: a wave has a limit");
  const std::size_t pairs = padded(rope_.pairs());
  const auto rows = w.share(count);
  for (std::uint32_t t = rows.begin; t < rows.end; ++t) {
    read_embedding(*weights_, tokens.tokens[t].token, residual_ + t * hidden_stride_);
    rope_.fill(tokens.tokens[t].position, cosines_ + t * pairs, sines_ + t * pairs);
  }
  for (std::uint32_t layer = 0; layer < config_->layers; ++layer) {
    attention(w, layer, tokens, pool);
    mlp(w, layer, count);
  }
}

void forward_pass::norm_rows(worker& w, const float* weight, std::uint32_t tokens) {
  const auto rows = w.share(tokens);
  for (std::uint32_t t = rows.begin; t < rows.end; ++t)
    kernels_->norm_operand[kind_]({.x = residual_ + t * hidden_stride_,
                                   .weight = weight,
                                   .columns = config_->hidden_size,
                                   .eps = config_->rms_norm_eps,
                                   .out = normed_ + t * hidden_stride_});
}

void forward_pass::product(worker::range panels, const matrix& m, const float* operand,
                           std::size_t operand_stride, std::uint32_t rows, float* out,
                           std::size_t out_stride, bool accumulate) const {
  kernels_->gemm[kind_]({.panels = m.panels,
                         .panel_begin = panels.begin,
                         .panel_end = panels.end,
                         .k = m.k,
                         .operand = operand,
                         .operand_stride = operand_stride,
                         .rows = rows,
                         .out = out,
                         .out_stride = out_stride,
                         .bias = m.bias,
                         .accumulate = accumulate});
}

void forward_pass::attention(worker& w, std::uint32_t layer, const wave& tokens, std::byte* pool) {
  const layer_weights& weights = weights_->layers[layer];
  const auto count = static_cast<std::uint32_t>(tokens.tokens.size());
  norm_rows(w, weights.input_norm, count);
  w.sync();
  product(w.share(weights.qkv.panel_count), weights.qkv, normed_, hidden_stride_, count, qkv_,
          qkv_stride_, false);
  w.sync();
  const auto rows = w.share(count);
  for (std::uint32_t t = rows.begin; t < rows.end; ++t)
    rotate(layer, tokens.tokens[t], t, pool);
  w.sync();
  // Dealt out in turns: later tiles of a prompt see more positions and cost more.
  const auto units = static_cast<std::uint32_t>(tokens.tiles.size()) * config_->kv_heads;
  for (std::uint32_t unit = w.index(); unit < units; unit += w.count())
    attend_tile(tokens, tokens.tiles[unit / config_->kv_heads], layer, unit % config_->kv_heads,
                w.index(), pool);
  w.sync();
  product(w.share(weights.attention_out.panel_count), weights.attention_out, wide_, wide_stride_,
          count, residual_, hidden_stride_, true);
  w.sync();
}

void forward_pass::rotate(std::uint32_t layer, const wave_token& token, std::uint32_t index,
                          std::byte* pool) {
  const layer_weights& weights = weights_->layers[layer];
  const std::size_t pairs = padded(rope_.pairs());
  std::byte* block = pool + token.blocks[token.position / lanes] * layout_.block_bytes;
  kernels_->rotate[kind_]({.qkv = qkv_ + index * qkv_stride_,
                           .heads = config_->heads,
                           .kv_heads = config_->kv_heads,
                           .head_dim = config_->head_dim,
                           .q_norm = weights.q_norm,
                           .k_norm = weights.k_norm,
                           .eps = config_->rms_norm_eps,
                           .cosines = cosines_ + index * pairs,
                           .sines = sines_ + index * pairs,
                           .q_out = q_ + index * q_stride_,
                           .k_block = block + layout_.key_offset(layer, 0),
                           .v_block = block + layout_.value_offset(layer, 0),
                           .slot = token.position % lanes});
}

void forward_pass::attend_tile(const wave& tokens, const wave_tile& tile, std::uint32_t layer,
                               std::uint32_t kv_head, std::uint32_t worker_index,
                               const std::byte* pool) {
  const std::uint32_t group = config_->heads / config_->kv_heads;
  attention_query queries[attention_queries_max];
  attention_call call{.queries = queries,
                      .query_count = 0,
                      .head_dim = config_->head_dim,
                      .scale = scale_,
                      .blocks = tokens.tokens[tile.first_token].blocks,
                      .pool = pool,
                      .block_bytes = layout_.block_bytes,
                      .k_offset = layout_.key_offset(layer, kv_head),
                      .v_offset = layout_.value_offset(layer, kv_head),
                      .scratch = scratch_ + std::size_t{worker_index} * attention_queries_max *
                                                padded(config_->head_dim)};
  const std::uint32_t query_count = tile.token_count * group;
  for (std::uint32_t i = 0; i < query_count; ++i) {
    const std::uint32_t token = tile.first_token + i / group;
    const std::uint32_t column = (kv_head * group + i % group) * config_->head_dim;
    queries[call.query_count++] = {.q = q_ + token * q_stride_ + column,
                                   .out_row = wide_ + token * wide_stride_,
                                   .out_column = column,
                                   .positions = tokens.tokens[token].position + 1};
    if (call.query_count == attention_queries_max || i + 1 == query_count) {
      kernels_->attend[kind_](call);
      call.query_count = 0;
    }
  }
}

void forward_pass::mlp(worker& w, std::uint32_t layer, std::uint32_t tokens) {
  const layer_weights& weights = weights_->layers[layer];
  norm_rows(w, weights.post_norm, tokens);
  w.sync();
  // Each worker turns its own gates and ups into operands, with no wait in between.
  const auto pairs = w.share(weights.gate_up.panel_count / 2);
  product({2 * pairs.begin, 2 * pairs.end}, weights.gate_up, normed_, hidden_stride_, tokens,
          gate_up_, 2 * mlp_stride_, false);
  for (std::uint32_t t = 0; t < tokens; ++t)
    kernels_->swiglu[kind_]({.gate_up = gate_up_ + t * 2 * mlp_stride_,
                             .operand = wide_ + t * wide_stride_,
                             .panel_begin = pairs.begin,
                             .panel_end = pairs.end});
  w.sync();
  product(w.share(weights.down.panel_count), weights.down, wide_, wide_stride_, tokens, residual_,
          hidden_stride_, true);
  w.sync();
}

} // namespace tokenrouter::cpu
