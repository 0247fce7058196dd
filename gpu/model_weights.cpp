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

constexpr std::uint32_t interleaved = 8; ///< neighbouring gates, then as many ups
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

  /// A part of `from` to rows from `row` of `to` on. `biased`: with its bias; else the bias is 0.
  void part(const linear_tensors& from, const matrix_part& part, const matrix& to,
            std::uint32_t row, bool biased = true) {
    convert(*from.weight);
    const std::size_t element = element_bytes(compute_);
    const std::size_t pitch = part.whole_columns * element, width = part.columns * element;
    const auto* source = static_cast<const std::byte*>(source_) + part.first_row * pitch +
                         part.first_column * element;
    auto* at = static_cast<std::byte*>(to.weight) + std::size_t{row} * width;
    cuda_check(cudaMemcpy2D(at, width, source, pitch, width, part.rows, cudaMemcpyHostToDevice));
    if (!to.bias)
      return;
    auto bias =
        from.bias && biased ? to_float(*from.bias) : std::vector<float>(part.first_row + part.rows);
    cuda_check(cudaMemcpy(to.bias + row, bias.data() + part.first_row, part.rows * sizeof(float),
                          cudaMemcpyHostToDevice));
  }

  /// Every `interleaved` rows of a part of `from` lie as many apart in `to`, the first at row
  /// `row`.
  void alternate_rows(const linear_tensors& from, const matrix_part& part, const matrix& to,
                      std::uint32_t row) {
    convert(*from.weight);
    const std::size_t pitch = part.columns * element_bytes(compute_);
    const std::size_t width = interleaved * pitch;
    auto* at = static_cast<std::byte*>(to.weight) + std::size_t{row} * pitch;
    const auto* source = static_cast<const std::byte*>(source_) + part.first_row * pitch;
    cuda_check(cudaMemcpy2D(at, 2 * width, source, width, width, part.rows / interleaved,
                            cudaMemcpyHostToDevice));
    if (!to.bias)
      return;
    const auto bias = to_float(*from.bias);
    for (std::size_t i = 0; i < part.rows; i += interleaved)
      cuda_check(cudaMemcpy(to.bias + row + 2 * i, bias.data() + part.first_row + i,
                            interleaved * sizeof(float), cudaMemcpyHostToDevice));
  }

 private:
  /// Makes `source_` point to the tensor's elements.
  void convert(const tensor_view& tensor) {
    source_ = tensor.bytes.data();
    if (compute_ == compute_type::bfloat16 && tensor.dtype == "BF16")
      return;
    if (compute_ == compute_type::float32 && tensor.dtype == "F32")
      return;
    floats_ = to_float(tensor);
    source_ = floats_.data();
    if (compute_ == compute_type::float32)
      return;
    rounded_.resize(floats_.size());
    std::ranges::transform(floats_, rounded_.begin(), [](float x) { return __float2bfloat16(x); });
    source_ = rounded_.data();
  }

  compute_type compute_;
  const void* source_ = nullptr;
  std::vector<float> floats_;
  std::vector<__nv_bfloat16> rounded_;
};

/// Parts of a layer's matrices that a shard has; of `q`, `k`, `v` within the matrix of that name.
struct layer_parts {
  layer_parts(const model_config& shard, const shard_group& group) {
    const std::uint64_t hidden = shard.hidden_size, i = group.index;
    const std::uint64_t queries = std::uint64_t{shard.heads} * shard.head_dim;
    const std::uint64_t keys = std::uint64_t{shard.kv_heads} * shard.head_dim;
    const std::uint64_t width = shard.intermediate_size;
    q = {i * queries, queries, 0, hidden, hidden};
    k = v = {i * keys, keys, 0, hidden, hidden};
    o = {0, hidden, i * queries, queries, queries * group.count};
    gate = up = {i * width, width, 0, hidden, hidden};
    down = {0, hidden, i * width, width, width * group.count};
  }
  matrix_part q, k, v, o, gate, up, down;
};

matrix_part whole_of(const matrix& m) {
  return whole_matrix(m.columns, m.k);
}

void upload(const model_tensors& from, const model_weights& to, const model_config& shard,
            const shard_group& group) {
  uploader up(to.compute);
  up.part({from.embedding, nullptr}, whole_of(to.embedding), to.embedding, 0);
  if (from.lm_head)
    up.part({from.lm_head, nullptr}, whole_of(to.lm_head), to.lm_head, 0);
  up.vector(from.final_norm, to.final_norm);
  const layer_parts parts(shard, group);
  const auto queries = static_cast<std::uint32_t>(parts.q.rows);
  const auto keys = static_cast<std::uint32_t>(parts.k.rows);
  for (std::size_t i = 0; i < to.layers.size(); ++i) {
    const layer_tensors& f = from.layers[i];
    const layer_weights& t = to.layers[i];
    up.vector(f.input_norm, t.input_norm);
    up.vector(f.post_norm, t.post_norm);
    up.vector(f.q_norm, t.q_norm);
    up.vector(f.k_norm, t.k_norm);
    up.part(f.q, parts.q, t.qkv, 0);
    up.part(f.k, parts.k, t.qkv, queries);
    up.part(f.v, parts.v, t.qkv, queries + keys);
    up.part(f.o, parts.o, t.attention_out, 0, group.leads());
    up.alternate_rows(f.gate, parts.gate, t.gate_up, 0);
    up.alternate_rows(f.up, parts.up, t.gate_up, interleaved);
    up.part(f.down, parts.down, t.down, 0, group.leads());
  }
}

/// Random matrices, norms of 1.
void invent(const model_weights& w, const model_config& shard, const shard_group& group,
            cudaStream_t stream) {
  std::uint32_t next = 0;
  const auto fill = [&](const matrix& m, std::uint64_t row, const matrix_part& part,
                        std::uint32_t id) {
    if (w.compute == compute_type::bfloat16)
      fill_random(static_cast<__nv_bfloat16*>(m.weight) + row * m.k, part, id, dummy_deviation,
                  stream);
    else
      fill_random(static_cast<float*>(m.weight) + row * m.k, part, id, dummy_deviation, stream);
    if (m.bias)
      fill_constant(m.bias, m.columns, 0.0f, stream);
  };
  const auto ones = [&](float* norm, std::uint32_t count) {
    if (norm)
      fill_constant(norm, count, 1.0f, stream);
  };
  fill(w.embedding, 0, whole_of(w.embedding), next++);
  if (!shard.tied_embeddings)
    fill(w.lm_head, 0, whole_of(w.lm_head), next++);
  layer_parts parts(shard, group);
  // Of the matrices that hold several, the parts as they lie there.
  parts.k.first_row += parts.q.rows * group.count;
  parts.v.first_row += (parts.q.rows + parts.k.rows) * group.count;
  const matrix_part gate_up{2 * parts.gate.first_row, 2 * parts.gate.rows, 0, parts.gate.columns,
                            parts.gate.columns};
  for (const auto& layer : w.layers) {
    ones(layer.input_norm, shard.hidden_size);
    ones(layer.post_norm, shard.hidden_size);
    ones(layer.q_norm, shard.head_dim);
    ones(layer.k_norm, shard.head_dim);
    fill(layer.qkv, 0, parts.q, next);
    fill(layer.qkv, parts.q.rows, parts.k, next);
    fill(layer.qkv, parts.q.rows + parts.k.rows, parts.v, next++);
    fill(layer.attention_out, 0, parts.o, next++);
    fill(layer.gate_up, 0, gate_up, next++);
    fill(layer.down, 0, parts.down, next++);
  }
  ones(w.final_norm, shard.hidden_size);
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
                                   const model_config& shard, cudaStream_t stream) {
  if (shard.intermediate_size % interleaved != 0)
    return fail(errc::mismatch, options.model_path.string() + ": intermediate_size " +
                                    std::to_string(shard.intermediate_size) +
                                    (options.group.count > 1 ? " of each shard" : "") +
                                    " is not a multiple of 8, which the GPU's kernels need");
  auto bytes = device_memory::allocate(weight_memory_bytes(shard, options.compute));
  if (!bytes)
    return tl::unexpected(bytes.error());
  arena filled(bytes->as());
  model_weights weights = lay_out(filled, shard, options.compute);
  check(filled.used() == bytes->bytes(), "load_weights: both passes lay out the same");
  weights.bytes = std::move(*bytes);
  if (options.dummy_weights) {
    invent(weights, shard, options.group, stream);
    cuda_check(cudaStreamSynchronize(stream));
    return weights;
  }
  const auto files = weight_files::open(options.model_path);
  if (!files)
    return tl::unexpected(files.error());
  const auto tensors = find_model_tensors(*files, config);
  if (!tensors)
    return tl::unexpected(tensors.error());
  upload(*tensors, weights, shard, options.group);
  return weights;
}

} // namespace tokenrouter::gpu
