#include "gpu/wave_results.hpp"

#include <algorithm>

#include <cuda_bf16.h>

#include "gpu/cuda_error.hpp"
#include "gpu/kernels/draw.hpp"
#include "gpu/kernels/rows.hpp"
#include "runtime/exec/heads/head.hpp"
#include "runtime/exec/load_contract.hpp"

namespace tokenrouter::gpu {
namespace {

result<void> grow(device_memory& memory, std::size_t bytes) {
  if (memory.bytes() >= bytes)
    return {};
  auto more = device_memory::allocate(std::max(bytes, 2 * memory.bytes()));
  if (!more)
    return tl::unexpected(more.error());
  memory = std::move(*more);
  return {};
}

/// As many columns for each shard, in eights: the products' kernels want that.
column_shares logit_shares(std::uint32_t columns, std::uint32_t shards) {
  const std::uint32_t each = (columns + shards - 1) / shards;
  return {columns, shards == 1 ? columns : std::min(columns, (each + 7) / 8 * 8)};
}

} // namespace

result<wave_results> wave_results::create(const load_options& options, const model_config& config,
                                          const model_weights& weights, const kv_shape& kv,
                                          std::uint32_t ends_max, communicator* group) {
  const std::uint32_t vocab_legal_tokens = legal_tokens(options, config);
  wave_results r(kv);
  r.config_ = &config;
  r.weights_ = &weights;
  r.group_ = group;
  r.columns_ = logit_shares(vocab_legal_tokens, group ? group->count() : 1);
  r.lm_head_ = weights.lm_head;
  r.lm_head_.columns = r.columns_.width;
  r.lm_head_.weight = static_cast<std::byte*>(weights.lm_head.weight) +
                      std::size_t{r.columns_.first(group ? group->index() : 0)} *
                          weights.lm_head.k * element_bytes(weights.compute);
  r.vocab_legal_tokens_ = vocab_legal_tokens;
  r.ends_max_ = ends_max;
  for (const auto& spec : options.heads) {
    auto loaded = load_head(spec, config.hidden_size);
    if (!loaded)
      return tl::unexpected(loaded.error());
    auto head = device_head::create(**loaded, ends_max);
    if (!head)
      return tl::unexpected(head.error());
    r.top_wanted_ = std::max(r.top_wanted_, (*loaded)->top_logits_wanted());
    r.heads_.push_back(std::move(*head));
  }
  const std::size_t element = element_bytes(weights.compute), rows = ends_max;
  const std::pair<device_memory*, std::size_t> wanted[] = {
      {&r.hidden_, rows * config.hidden_size * sizeof(float)},
      {&r.operands_, rows * config.hidden_size * element},
      {&r.logits_, rows * vocab_legal_tokens * sizeof(float)},
      {&r.gathered_, group ? rows * r.columns_.width * group->count() * sizeof(float) : 0},
      {&r.top_, rows * kept_logits_max * sizeof(float)},
      {&r.drawn_, rows * sizeof(drawn_row)},
      {&r.likeliest_, rows * likeliest_max * sizeof(likely_token)}};
  for (const auto& [memory, bytes] : wanted) {
    auto made = device_memory::allocate(bytes);
    if (!made)
      return tl::unexpected(made.error());
    *memory = std::move(*made);
  }
  auto host = device_memory::allocate_pinned(rows * sizeof(drawn_row));
  if (!host)
    return tl::unexpected(host.error());
  r.drawn_host_ = std::move(*host);
  auto likely = device_memory::allocate_pinned(r.likeliest_.bytes());
  if (!likely)
    return tl::unexpected(likely.error());
  r.likeliest_host_ = std::move(*likely);
  prepare_draws();
  return r;
}

std::uint64_t wave_results::bytes() const {
  std::uint64_t sum =
      hidden_.bytes() + operands_.bytes() + logits_.bytes() + gathered_.bytes() + top_.bytes();
  for (const auto& head : heads_)
    sum += head.bytes();
  return sum;
}

void wave_results::tune(forward_pass& pass, std::uint32_t rows, cudaStream_t stream) {
  pass.matrix_products().tune({&lm_head_, 1}, rows, product_output::exact, {.x = operands_.as()},
                              logits_.as(), stream);
}

result<void> wave_results::prepare(const step_input& in, std::size_t distributions,
                                   cudaStream_t stream) {
  if (auto room = grow(mixes_, in.mixes.size() * sizeof(float)); !room)
    return room;
  if (auto room = grow(distributions_, distributions * sizeof(float)); !room)
    return room;
  if (!in.mixes.empty())
    cuda_check(cudaMemcpyAsync(mixes_.as(), in.mixes.data(), in.mixes.size() * sizeof(float),
                               cudaMemcpyHostToDevice, stream));
  return {};
}

/// Every shard makes its columns and learns the others'.
void wave_results::compute_logits(std::uint32_t ends, forward_pass& pass, cudaStream_t stream) {
  if (!group_) {
    pass.matrix_products().run(lm_head_, ends, product_output::exact, {.x = operands_.as()},
                               logits_.as(), stream);
    return;
  }
  const std::size_t share = std::size_t{ends} * columns_.width;
  auto* all = gathered_.as<float>();
  pass.matrix_products().run(lm_head_, ends, product_output::exact, {.x = operands_.as()},
                             all + group_->index() * share, stream);
  group_->gather(all, share, stream);
  join_columns(all, columns_, group_->count(), ends, logits_.as<float>(), stream);
}

void wave_results::run_heads(const device_wave& wave, std::uint32_t ends, std::byte* pool,
                             cudaStream_t stream) {
  const std::size_t element = element_bytes(weights_->compute);
  const head_sources sources{.hidden = hidden_.as<float>(),
                             .hidden_size = config_->hidden_size,
                             .embeddings = weights_->embedding.weight,
                             .bf16_embeddings = weights_->compute == compute_type::bfloat16,
                             .top = top_.as<float>(),
                             .drawn = drawn_.as<drawn_row>(),
                             .records = {.pool = pool,
                                         .block_bytes = kv_.block * element,
                                         .offset_bytes = kv_.records * element,
                                         .floats = kv_.record_floats,
                                         .hidden_size = config_->hidden_size}};
  if (reads_window())
    write_records({.records = sources.records,
                   .orders = wave.orders,
                   .slots = wave.slots,
                   .hidden = sources.hidden,
                   .top = sources.top,
                   .top_count = vocab_legal_tokens_,
                   .rows = ends},
                  stream);
  for (std::uint32_t i = 0; i < heads_.size(); ++i)
    heads_[i].run(wave, sources, i, ends, stream);
}

void wave_results::run(const device_wave& wave, const wave_bucket& bucket, forward_pass& pass,
                       std::byte* pool, cudaStream_t stream) {
  const std::uint32_t ends = bucket.ends;
  const norm_call norm{.residual = pass.residual(),
                       .weight = weights_->final_norm,
                       .gather = wave.orders,
                       .rows = ends,
                       .hidden = config_->hidden_size,
                       .eps = config_->rms_norm_eps,
                       .exact = hidden_.as<float>()};
  const bool bf16 = weights_->compute == compute_type::bfloat16;
  if (bf16)
    norm_rows(norm, operands_.as<__nv_bfloat16>(), stream);
  else
    norm_rows(norm, operands_.as<float>(), stream);
  compute_logits(ends, pass, stream);
  draw_rows({.logits = logits_.as<float>(),
             .stride = vocab_legal_tokens_,
             .count = vocab_legal_tokens_,
             .orders = wave.orders,
             .has_biases = bucket.has_biases,
             .tables = wave.tables,
             .rows = ends,
             .top_wanted = top_wanted_,
             .top_of_all = reads_window(),
             .top = top_.as<float>(),
             .mixes = mixes_.as<float>(),
             .distributions = distributions_.as<float>(),
             .out = drawn_.as<drawn_row>(),
             .likeliest = likeliest_.as<likely_token>()},
            stream);
  run_heads(wave, ends, pool, stream);
  cuda_check(cudaMemcpyAsync(drawn_host_.as(), drawn_.as(), ends * sizeof(drawn_row),
                             cudaMemcpyDeviceToHost, stream));
}

std::span<const drawn_row> wave_results::drawn() const {
  return {drawn_host_.as<drawn_row>(), ends_max_};
}

std::span<const likely_token> wave_results::read_likeliest(std::uint32_t ends,
                                                           cudaStream_t stream) {
  const std::size_t count = std::size_t{ends} * likeliest_max;
  cuda_check(cudaMemcpyAsync(likeliest_host_.as(), likeliest_.as(), count * sizeof(likely_token),
                             cudaMemcpyDeviceToHost, stream));
  cuda_check(cudaStreamSynchronize(stream));
  return {likeliest_host_.as<likely_token>(), count};
}

void wave_results::read_distributions(std::span<float> out, cudaStream_t stream) const {
  cuda_check(cudaMemcpyAsync(out.data(), distributions_.as(), out.size_bytes(),
                             cudaMemcpyDeviceToHost, stream));
  cuda_check(cudaStreamSynchronize(stream));
}

std::vector<float> wave_results::hidden_of(std::uint32_t end) const {
  std::vector<float> out(config_->hidden_size);
  cuda_check(cudaMemcpy(out.data(), hidden_.as<float>() + std::size_t{end} * out.size(),
                        out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return out;
}

std::vector<float> wave_results::logits_of(std::uint32_t end) const {
  std::vector<float> out(vocab_legal_tokens_);
  cuda_check(cudaMemcpy(out.data(), logits_.as<float>() + std::size_t{end} * out.size(),
                        out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return out;
}

} // namespace tokenrouter::gpu
