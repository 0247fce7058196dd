#include "gpu/device_head.hpp"

#include <cuda_bf16.h>

#include "gpu/cuda_error.hpp"

namespace tokenrouter::gpu {
namespace {

/// Collects arrays on the host; their places on the device are known once all are there.
class float_stack {
 public:
  std::size_t put(const std::vector<float>& values) {
    const std::size_t at = values_.size();
    values_.insert(values_.end(), values.begin(), values.end());
    values_.resize((values_.size() + 3) / 4 * 4); // 16-byte aligned
    return at;
  }

  /// As [out][in]: a warp reads neighbouring weights of one output.
  std::size_t put_transposed(const dense_layer& layer) {
    std::vector<float> rows(layer.weight.size());
    for (std::size_t i = 0; i < layer.in; ++i)
      for (std::size_t o = 0; o < layer.out; ++o)
        rows[o * layer.in + i] = layer.weight[i * layer.out + o];
    return put(rows);
  }

  std::size_t put_bias(const dense_layer& layer) {
    return put(layer.bias.empty() ? std::vector<float>(layer.out, 0.0f) : layer.bias);
  }

  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<float> values_;
};

head_activation activation_of(head_step::activation a) {
  switch (a) {
  case head_step::activation::relu:
    return head_activation::relu;
  case head_step::activation::gelu:
    return head_activation::gelu;
  default:
    return head_activation::none;
  }
}

} // namespace

result<device_head> device_head::create(const routing_head& source, std::uint32_t rows_max) {
  const head_program program = source.program();
  device_head head;
  float_stack stack;
  struct places {
    std::size_t first = 0, second = 0, third = 0;
  };
  std::vector<places> at;
  for (const auto& s : program.steps)
    at.push_back(s.what == head_step::kind::dense
                     ? places{stack.put_transposed(*s.dense), stack.put_bias(*s.dense), 0}
                     : places{stack.put(s.scale), stack.put(s.shift), stack.put(s.mean)});
  auto weights = device_memory::allocate(stack.values().size() * sizeof(float));
  if (!weights)
    return tl::unexpected(weights.error());
  auto workspace = device_memory::allocate(std::size_t{program.floats} * rows_max * sizeof(float));
  if (!workspace)
    return tl::unexpected(workspace.error());
  cuda_check(cudaMemcpy(weights->as(), stack.values().data(), stack.values().size() * sizeof(float),
                        cudaMemcpyHostToDevice));
  const float* base = weights->as<float>();
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const head_step& s = program.steps[i];
    step made;
    made.is_dense = s.what == head_step::kind::dense;
    if (made.is_dense)
      made.dense = {.weight = base + at[i].first,
                    .bias = base + at[i].second,
                    .in = s.dense->in,
                    .out = s.dense->out,
                    .from = s.from,
                    .to = s.to,
                    .accumulate = s.accumulate,
                    .activation = activation_of(s.after)};
    else
      made.scale = {.scale = base + at[i].first,
                    .shift = base + at[i].second,
                    .mean = s.mean.empty() ? nullptr : base + at[i].third,
                    .count = static_cast<std::uint32_t>(s.scale.size()),
                    .eps = s.eps,
                    .from = s.from,
                    .to = s.to,
                    .relu = s.after == head_step::activation::relu};
    head.steps_.push_back(made);
  }
  head.weights_ = std::move(*weights);
  head.workspace_ = std::move(*workspace);
  head.floats_ = program.floats;
  head.top_count_ = source.top_logits_wanted();
  head.window_positions_ = source.window_positions();
  head.output_at_ = program.output_at;
  head.hidden_at_ = program.hidden_at;
  head.embedding_at_ = program.embedding_at;
  head.top_at_ = program.top_logits_at;
  return head;
}

void device_head::fill_inputs(const device_wave& wave, const head_sources& from,
                              const head_rows& rows, cudaStream_t stream) const {
  const bool has_window = window_positions_ > 1;
  const head_input_call input{.hidden = from.hidden,
                              .hidden_size = from.hidden_size,
                              .hidden_at = has_window ? head_program::unused : hidden_at_,
                              .embeddings = from.embeddings,
                              .embedding_at = embedding_at_,
                              .top = from.top,
                              .top_count = top_count_,
                              .top_at = has_window ? head_program::unused : top_at_,
                              .drawn = from.drawn};
  if (from.bf16_embeddings)
    head_inputs<__nv_bfloat16>(input, rows, stream);
  else
    head_inputs<float>(input, rows, stream);
  if (has_window)
    gather_windows({.records = from.records,
                    .orders = wave.orders,
                    .positions = wave.positions,
                    .tables_of = wave.tables_of,
                    .tables = wave.tables,
                    .window_positions = window_positions_,
                    .top_count = top_count_,
                    .hidden_at = hidden_at_,
                    .top_at = top_at_},
                   rows, stream);
}

void device_head::run(const device_wave& wave, const head_sources& from, std::uint32_t index,
                      std::uint32_t rows, cudaStream_t stream) const {
  const head_rows all{workspace_.as<float>(), floats_, rows};
  fill_inputs(wave, from, all, stream);
  for (const step& s : steps_) {
    if (s.is_dense)
      head_dense(s.dense, all, stream);
    else
      head_scale(s.scale, all, stream);
  }
  head_output(output_at_, index, wave.orders, from.drawn, all, stream);
}

} // namespace tokenrouter::gpu
