#include "runtime/exec/cpu/weights.hpp"

#include <bit>

#include "runtime/core/check.hpp"
#include "runtime/exec/cpu/packing.hpp"
#include "runtime/exec/model_tensors.hpp"

namespace tokenrouter::cpu {
namespace {

/// Hands out cache-line-aligned pieces of a memory, or, with no memory, only counts them.
class arena {
 public:
  explicit arena(std::byte* base) : base_(base) {}

  std::byte* take(std::size_t bytes) {
    std::byte* piece = base_ ? base_ + used_ : nullptr;
    used_ += (bytes + 63) / 64 * 64;
    return piece;
  }
  float* take_floats(std::size_t count) {
    return reinterpret_cast<float*>(take(count * sizeof(float)));
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

matrix lay_out_matrix(arena& a, storage kind, std::uint32_t panel_count, std::uint32_t k,
                      bool bias) {
  matrix m;
  m.panel_count = panel_count;
  m.k = k;
  m.panels = a.take(panel_count * panel_bytes(kind, k));
  m.bias = bias ? a.take_floats(std::size_t{panel_count} * lanes) : nullptr;
  return m;
}

std::uint32_t panels_of(std::uint32_t columns) {
  return padded(columns) / lanes;
}

model_weights lay_out(arena& a, const model_config& c, storage kind) {
  model_weights w;
  w.kind = kind;
  w.embedding = lay_out_matrix(a, kind, panels_of(c.vocab_tokens), c.hidden_size, false);
  w.lm_head = c.tied_embeddings
                  ? w.embedding
                  : lay_out_matrix(a, kind, panels_of(c.vocab_tokens), c.hidden_size, false);
  for (std::uint32_t i = 0; i < c.layers; ++i) {
    layer_weights layer;
    const std::uint32_t qkv_columns = (c.heads + 2 * c.kv_heads) * c.head_dim;
    layer.input_norm = a.take_floats(c.hidden_size);
    layer.qkv = lay_out_matrix(a, kind, panels_of(qkv_columns), c.hidden_size, c.attention_bias);
    layer.q_norm = c.qk_norm ? a.take_floats(c.head_dim) : nullptr;
    layer.k_norm = c.qk_norm ? a.take_floats(c.head_dim) : nullptr;
    layer.attention_out =
        lay_out_matrix(a, kind, panels_of(c.hidden_size), c.heads * c.head_dim, c.attention_bias);
    layer.post_norm = a.take_floats(c.hidden_size);
    layer.gate_up =
        lay_out_matrix(a, kind, 2 * panels_of(c.intermediate_size), c.hidden_size, c.mlp_bias);
    layer.down = lay_out_matrix(a, kind, panels_of(c.hidden_size), c.intermediate_size, c.mlp_bias);
    w.layers.push_back(layer);
  }
  w.final_norm = a.take_floats(c.hidden_size);
  return w;
}

void read_vector(const tensor_view* tensor, float* out) {
  to_float(*tensor, {out, static_cast<std::size_t>(tensor->elements())});
}

} // namespace

std::uint64_t weight_memory_bytes(const model_config& config, storage kind) {
  arena counter(nullptr);
  lay_out(counter, config, kind);
  return counter.used();
}

result<void> check_tensors(const weight_files& files, const model_config& config) {
  const auto found = find_model_tensors(files, config);
  if (!found)
    return tl::unexpected(found.error());
  return {};
}

result<model_weights> load_weights(const weight_files& files, const model_config& config,
                                   storage kind, thread_pool& pool) {
  const auto tensors = find_model_tensors(files, config);
  if (!tensors)
    return tl::unexpected(tensors.error());
  auto bytes = memory::allocate(weight_memory_bytes(config, kind));
  if (!bytes)
    return tl::unexpected(bytes.error());
  arena filled(bytes->data());
  model_weights weights = lay_out(filled, config, kind);
  check(filled.used() == bytes->bytes(), "load_weights: both passes lay out the same");
  weights.bytes = std::move(*bytes);

  const auto fill = [&](const matrix& m, const std::vector<column_source>& columns) {
    check(columns.size() == std::size_t{m.panel_count} * lanes, "load_weights: columns");
    pack(columns, m.k, kind, m.panels, m.bias, pool);
  };
  fill(weights.embedding, stacked({tensors->embedding}, {}));
  if (tensors->lm_head)
    fill(weights.lm_head, stacked({tensors->lm_head}, {}));
  read_vector(tensors->final_norm, weights.final_norm);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const layer_weights& to = weights.layers[i];
    const layer_tensors& from = tensors->layers[i];
    read_vector(from.input_norm, to.input_norm);
    read_vector(from.post_norm, to.post_norm);
    if (from.q_norm) {
      read_vector(from.q_norm, to.q_norm);
      read_vector(from.k_norm, to.k_norm);
    }
    fill(to.qkv, stacked({from.q.weight, from.k.weight, from.v.weight},
                         {from.q.bias, from.k.bias, from.v.bias}));
    fill(to.attention_out, stacked({from.o.weight}, {from.o.bias}));
    fill(to.gate_up, interleaved(from.gate.weight, from.up.weight, from.gate.bias, from.up.bias));
    fill(to.down, stacked({from.down.weight}, {from.down.bias}));
  }
  return weights;
}

void read_embedding(const model_weights& weights, token_id token, float* out) {
  const auto id = static_cast<std::uint32_t>(token);
  const matrix& m = weights.embedding;
  const std::byte* panel = m.panels + id / lanes * panel_bytes(weights.kind, m.k);
  if (weights.kind == storage::f32) {
    const auto* values = reinterpret_cast<const float*>(panel) + id % lanes;
    for (std::uint32_t i = 0; i < m.k; ++i)
      out[i] = values[std::size_t{i} * lanes];
    return;
  }
  const auto* pairs = reinterpret_cast<const std::uint32_t*>(panel) + id % lanes;
  for (std::uint32_t i = 0; i < m.k; i += 2) {
    const std::uint32_t pair = pairs[std::size_t{i / 2} * lanes];
    out[i] = std::bit_cast<float>(pair << 16);
    if (i + 1 < m.k)
      out[i + 1] = std::bit_cast<float>(pair & 0xffff0000u);
  }
}

} // namespace tokenrouter::cpu
