#include "gpu/model_weights.hpp"

#include <algorithm>
#include <string>

#include <cuda_bf16.h>

#include "gpu/arena.hpp"
#include "gpu/cuda_error.hpp"
#include "gpu/kernels/rows.hpp"
#include "runtime/core/check.hpp"
#include "runtime/exec/model_tensors.hpp"
#include "runtime/exec/safetensors.hpp"

namespace tokenrouter::gpu {
namespace {

constexpr std::uint32_t group = 8; ///< neighbouring gates, then as many ups
constexpr float dummy_deviation = 0.02f;

matrix take_matrix(arena& a, std::uint32_t columns, std::uint32_t k, compute_type compute,
                   bool bias) {
  return {a.take(std::size_t{columns} * k * element_bytes(compute)),
          bias ? a.take<float>(columns) : nullptr, columns, k};
}

model_weights lay_out(arena& a, const model_config& c, compute_type compute) {
  model_weights w;
  w.compute = compute;
  w.embedding = take_matrix(a, c.vocab_tokens, c.hidden_size, compute, false);
  w.lm_head = c.tied_embeddings ? w.embedding
                                : take_matrix(a, c.vocab_tokens, c.hidden_size, compute, false);
  for (std::uint32_t i = 0; i < c.layers; ++i) {
    layer_weights l;
    l.input_norm = a.take<float>(c.hidden_size);
    l.qkv = take_matrix(a, (c.heads + 2 * c.kv_heads) * c.head_dim, c.hidden_size, compute,
                        c.attention_bias);
    l.q_norm = c.qk_norm ? a.take<float>(c.head_dim) : nullptr;
    l.k_norm = c.qk_norm ? a.take<float>(c.head_dim) : nullptr;
    l.attention_out =
        take_matrix(a, c.hidden_size, c.heads * c.head_dim, compute, c.attention_bias);
    l.post_norm = a.take<float>(c.hidden_size);
    l.gate_up = take_matrix(a, 2 * c.intermediate_size, c.hidden_size, compute, c.mlp_bias);
    l.down = take_matrix(a, c.hidden_size, c.intermediate_size, compute, c.mlp_bias);
    w.layers.push_back(l);
  }
  w.final_norm = a.take<float>(c.hidden_size);
  return w;
}

/// Copies tensors of files to the device, in the type that the model computes with.
class uploader {
 public:
  uploader(compute_type compute) : compute_(compute) {}

  void vector(const tensor_view* from, float* to) {
    if (!from)
      return;
    const auto values = to_float(*from);
    cuda_check(
        cudaMemcpy(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
  }

  /// Rows of `from` after one another, from row `row` of `to` on.
  void rows(const linear_tensors& from, const matrix& to, std::uint32_t row) {
    const std::size_t bytes = convert(*from.weight);
    auto* at =
        static_cast<std::byte*>(to.weight) + std::size_t{row} * to.k * element_bytes(compute_);
    cuda_check(cudaMemcpy(at, source_, bytes, cudaMemcpyHostToDevice));
    if (to.bias)
      vector(from.bias, to.bias + row);
  }

  /// Every `group` rows of `from` lie `group` rows apart in `to`, the first at row `row`.
  void alternate_rows(const linear_tensors& from, const matrix& to, std::uint32_t row) {
    const std::size_t bytes = convert(*from.weight);
    const std::size_t width = std::size_t{group} * to.k * element_bytes(compute_);
    auto* at =
        static_cast<std::byte*>(to.weight) + std::size_t{row} * to.k * element_bytes(compute_);
    cuda_check(
        cudaMemcpy2D(at, 2 * width, source_, width, width, bytes / width, cudaMemcpyHostToDevice));
    if (!to.bias)
      return;
    const auto bias = to_float(*from.bias);
    for (std::size_t i = 0; i < bias.size(); i += group)
      cuda_check(cudaMemcpy(to.bias + row + 2 * i, bias.data() + i, group * sizeof(float),
                            cudaMemcpyHostToDevice));
  }

 private:
  /// Makes `source_` point to the tensor's elements; returns their bytes.
  std::size_t convert(const tensor_view& tensor) {
    source_ = tensor.bytes.data();
    if (compute_ == compute_type::bfloat16 && tensor.dtype == "BF16")
      return tensor.bytes.size();
    if (compute_ == compute_type::float32 && tensor.dtype == "F32")
      return tensor.bytes.size();
    floats_ = to_float(tensor);
    source_ = floats_.data();
    if (compute_ == compute_type::float32)
      return floats_.size() * sizeof(float);
    rounded_.resize(floats_.size());
    std::ranges::transform(floats_, rounded_.begin(), [](float x) { return __float2bfloat16(x); });
    source_ = rounded_.data();
    return rounded_.size() * sizeof(__nv_bfloat16);
  }

  compute_type compute_;
  const void* source_ = nullptr;
  std::vector<float> floats_;
  std::vector<__nv_bfloat16> rounded_;
};

void upload(const model_tensors& from, const model_weights& to) {
  uploader up(to.compute);
  up.rows({from.embedding, nullptr}, to.embedding, 0);
  if (from.lm_head)
    up.rows({from.lm_head, nullptr}, to.lm_head, 0);
  up.vector(from.final_norm, to.final_norm);
  for (std::size_t i = 0; i < to.layers.size(); ++i) {
    const layer_tensors& f = from.layers[i];
    const layer_weights& t = to.layers[i];
    up.vector(f.input_norm, t.input_norm);
    up.vector(f.post_norm, t.post_norm);
    up.vector(f.q_norm, t.q_norm);
    up.vector(f.k_norm, t.k_norm);
    const auto rows_of = [](const linear_tensors& l) {
      return static_cast<std::uint32_t>(l.weight->shape[0]);
    };
    up.rows(f.q, t.qkv, 0);
    up.rows(f.k, t.qkv, rows_of(f.q));
    up.rows(f.v, t.qkv, rows_of(f.q) + rows_of(f.k));
    up.rows(f.o, t.attention_out, 0);
    up.alternate_rows(f.gate, t.gate_up, 0);
    up.alternate_rows(f.up, t.gate_up, group);
    up.rows(f.down, t.down, 0);
  }
}

/// Random matrices, norms of 1.
void invent(const model_weights& w, const model_config& c, cudaStream_t stream) {
  std::uint32_t next = 0;
  const auto fill = [&](const matrix& m) {
    const std::uint64_t count = std::uint64_t{m.columns} * m.k;
    if (w.compute == compute_type::bfloat16)
      fill_random(static_cast<__nv_bfloat16*>(m.weight), count, next++, dummy_deviation, stream);
    else
      fill_random(static_cast<float*>(m.weight), count, next++, dummy_deviation, stream);
    if (m.bias)
      fill_constant(m.bias, m.columns, 0.0f, stream);
  };
  const auto ones = [&](float* norm, std::uint32_t count) {
    if (norm)
      fill_constant(norm, count, 1.0f, stream);
  };
  fill(w.embedding);
  if (!c.tied_embeddings)
    fill(w.lm_head);
  for (const auto& layer : w.layers) {
    ones(layer.input_norm, c.hidden_size);
    ones(layer.post_norm, c.hidden_size);
    ones(layer.q_norm, c.head_dim);
    ones(layer.k_norm, c.head_dim);
    for (const matrix* m : {&layer.qkv, &layer.attention_out, &layer.gate_up, &layer.down})
      fill(*m);
  }
  ones(w.final_norm, c.hidden_size);
}

} // namespace

std::size_t element_bytes(compute_type compute) {
  return compute == compute_type::bfloat16 ? 2 : 4;
}

std::uint64_t weight_memory_bytes(const model_config& config, compute_type compute) {
  arena counter(nullptr);
  lay_out(counter, config, compute);
  return counter.used();
}

result<model_weights> load_weights(const load_options& options, const model_config& config,
                                   cudaStream_t stream) {
  if (config.intermediate_size % group != 0)
    return fail(errc::mismatch, options.model_path.string() + ": intermediate_size " +
                                    std::to_string(config.intermediate_size) +
                                    " is not a multiple of 8, which the GPU's kernels need");
  auto bytes = device_memory::allocate(weight_memory_bytes(config, options.compute));
  if (!bytes)
    return tl::unexpected(bytes.error());
  arena filled(bytes->as());
  model_weights weights = lay_out(filled, config, options.compute);
  check(filled.used() == bytes->bytes(), "load_weights: both passes lay out the same");
  weights.bytes = std::move(*bytes);
  if (options.dummy_weights) {
    invent(weights, config, stream);
    cuda_check(cudaStreamSynchronize(stream));
    return weights;
  }
  const auto files = weight_files::open(options.model_path);
  if (!files)
    return tl::unexpected(files.error());
  const auto tensors = find_model_tensors(*files, config);
  if (!tensors)
    return tl::unexpected(tensors.error());
  upload(*tensors, weights);
  return weights;
}

} // namespace tokenrouter::gpu
