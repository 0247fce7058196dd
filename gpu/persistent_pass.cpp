#include "gpu/persistent_pass.hpp"

#include <cmath>

#include "gpu/arena.hpp"
#include "gpu/cuda_error.hpp"
#include "gpu/wave_plan.hpp"
#include "runtime/core/check.hpp"

namespace tokenrouter::gpu {
namespace {

/// Of floats that no launch has written: no layer-0 tag, in every word.
constexpr int unwritten_byte = 0x01;

persistent_exchange lay_out(arena& memory, const persistent_shape& s, std::uint32_t processors) {
  const std::size_t rows = persistent_rows_max;
  const std::size_t partials =
      std::size_t{partials_max({.fast = true, .kv_heads = s.kv_heads, .processors = processors})} *
      s.kv_heads * 16;
  persistent_exchange e{};
  e.row_words = words_of_row(s);
  e.state = memory.take<persistent_state>(1);
  e.words = memory.take<unsigned>(2 * s.layers * rows * e.row_words);
  e.middle = memory.take<float>(rows * s.hidden);
  e.residual = memory.take<float>(rows * s.hidden);
  e.sums = memory.take<float>(partials * s.head_dim);
  e.bounds = memory.take<float>(partials * 2);
  return e;
}

persistent_layer layer_of(const layer_weights& w) {
  const auto weight = [](const matrix& m) { return static_cast<const __nv_bfloat16*>(m.weight); };
  return {.qkv = weight(w.qkv),
          .attention_out = weight(w.attention_out),
          .gate_up = weight(w.gate_up),
          .down = weight(w.down),
          .qkv_bias = w.qkv.bias,
          .attention_out_bias = w.attention_out.bias,
          .gate_up_bias = w.gate_up.bias,
          .down_bias = w.down.bias,
          .input_norm = w.input_norm,
          .post_norm = w.post_norm,
          .q_norm = w.q_norm,
          .k_norm = w.k_norm};
}

} // namespace

persistent_shape persistent_shape_of(const model_config& c) {
  return {c.layers, c.hidden_size, c.heads, c.kv_heads, c.head_dim, c.intermediate_size};
}

std::uint64_t persistent_bytes(const model_config& config, compute_type compute,
                               std::uint32_t processors) {
  const auto shape = persistent_shape_of(config);
  if (compute != compute_type::bfloat16 || !persistent_fits(shape, processors))
    return 0;
  arena counter(nullptr);
  lay_out(counter, shape, processors);
  return counter.used();
}

result<persistent_pass> persistent_pass::create(const model_config& c, const model_weights& weights,
                                                const kv_shape& kv, const float* rope,
                                                float* residual, std::uint32_t processors,
                                                cudaStream_t stream) {
  persistent_pass pass;
  const std::uint64_t bytes = persistent_bytes(c, weights.compute, processors);
  if (bytes == 0)
    return pass;
  const auto shape = persistent_shape_of(c);
  const std::uint32_t blocks = persistent_blocks(shape);
  if (blocks != processors)
    return pass;
  auto memory = device_memory::allocate(bytes);
  if (!memory)
    return tl::unexpected(memory.error());
  arena filled(memory->as());
  const persistent_exchange exchange = lay_out(filled, shape, processors);
  cuda_check(cudaMemsetAsync(memory->as(), unwritten_byte, bytes, stream));
  cuda_check(cudaMemsetAsync(exchange.state, 0, sizeof(persistent_state), stream));
  const std::size_t words =
      2 * std::size_t{shape.layers} * persistent_rows_max * exchange.row_words;
  cuda_check(cudaMemsetAsync(exchange.words, 0xff, words * sizeof(unsigned), stream));
  pass.memory_ = std::move(*memory);
  pass.blocks_ = blocks;
  persistent_call& call = pass.call_;
  call.shape = shape;
  call.eps = c.rms_norm_eps;
  call.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  call.embedding = static_cast<const __nv_bfloat16*>(weights.embedding.weight);
  call.rope = rope;
  call.side_elements = kv.side;
  call.block_elements = kv.block;
  call.exchange = exchange;
  call.residual = residual;
  for (std::uint32_t i = 0; i < c.layers; ++i)
    call.layers[i] = layer_of(weights.layers[i]);
  return pass;
}

bool persistent_pass::fits(std::uint32_t tokens) const {
  return blocks_ > 0 && tokens <= persistent_rows_max;
}

bool persistent_pass::takes(std::uint32_t tokens) const {
  const auto known = preferred_.lower_bound(tokens);
  return fits(tokens) && (known == preferred_.end() || known->second);
}

void persistent_pass::run(const device_wave& wave, std::uint32_t tokens, void* pool,
                          cudaStream_t stream) const {
  check(fits(tokens), "persistent_pass: a wave that fits");
  persistent_call call = call_;
  call.ids = wave.ids;
  call.positions = wave.positions;
  call.slots = wave.slots;
  call.tokens = tokens;
  call.pieces = wave.pieces;
  call.piece_count = wave.piece_count;
  call.tables = wave.tables;
  call.pool = static_cast<__nv_bfloat16*>(pool);
  persistent_layers(call, blocks_, stream);
}

} // namespace tokenrouter::gpu
