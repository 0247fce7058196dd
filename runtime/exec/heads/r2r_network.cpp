#include "runtime/exec/heads/r2r_network.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/heads/kernels.hpp"

namespace tokenrouter {

namespace {

std::string block_prefix(std::size_t index) {
  return "backbone.blocks." + std::to_string(index);
}

/// Moves a result's value to `out`; remembers the first error.
class reader {
 public:
  template <class T>
  bool take(result<T> from, T& out) {
    if (!from) {
      error_ = std::move(from.error());
      return false;
    }
    out = std::move(*from);
    return true;
  }
  error take_error() { return std::move(error_); }

 private:
  error error_;
};

bool read_block(const head_file& file, std::size_t index, std::uint32_t width, reader& r,
                r2r_network_weights::block& block) {
  const std::string prefix = block_prefix(index);
  std::uint32_t wide = 0;
  return r.take(file.norm(prefix + ".layer_norm", width), block.norm) &&
         r.take(file.extent(prefix + ".mlp.0.weight", 0, 2), wide) &&
         r.take(file.dense(prefix + ".mlp.0", width, wide), block.up) &&
         r.take(file.dense(prefix + ".mlp.3", wide, width), block.down);
}

bool read_weights(const head_file& file, std::uint32_t hidden, std::uint32_t embedding, reader& r,
                  r2r_network_weights& w) {
  std::uint32_t logits = 0, joined = 0, width = 0;
  if (!r.take(file.extent("logits_projection.weight", 1, 2), logits) ||
      !r.take(file.extent("combined_projection.weight", 0, 2), joined) ||
      !r.take(file.extent("backbone.input_projection.weight", 0, 2), width) ||
      !r.take(file.dense("logits_projection", logits, hidden), w.logits) ||
      !r.take(file.dense("combined_projection", 2 * hidden + embedding, joined), w.combined) ||
      !r.take(file.dense("backbone.input_projection", joined, width), w.input))
    return false;
  for (std::size_t i = 0; file.has(block_prefix(i) + ".layer_norm.weight"); ++i)
    if (!read_block(file, i, width, r, w.blocks.emplace_back()))
      return false;
  return r.take(file.norm("backbone.output_layer.0", width), w.output_norm) &&
         r.take(file.dense("backbone.output_layer.1", width, 1), w.output);
}

} // namespace

std::uint64_t r2r_network_weights::bytes() const {
  std::uint64_t sum =
      logits.bytes() + combined.bytes() + input.bytes() + output_norm.bytes() + output.bytes();
  for (const block& b : blocks)
    sum += b.norm.bytes() + b.up.bytes() + b.down.bytes();
  return sum;
}

r2r_network::r2r_network(r2r_network_weights weights) : w_(std::move(weights)) {
  joined_.resize(w_.combined.in);
  projected_.resize(w_.combined.out);
  x_.resize(w_.input.out);
  normed_.resize(w_.input.out);
  std::size_t widest = 0;
  for (const auto& block : w_.blocks)
    widest = std::max<std::size_t>(widest, block.up.out);
  wide_.resize(widest);
}

std::span<float> r2r_network::embedding_input() {
  const std::size_t hidden = w_.logits.out;
  return std::span(joined_).subspan(hidden, joined_.size() - 2 * hidden);
}

float r2r_network::score(const float* logits) {
  w_.logits.apply(logits, joined_.data() + joined_.size() - w_.logits.out);
  w_.combined.apply(joined_.data(), projected_.data());
  w_.input.apply(projected_.data(), x_.data());
  for (const auto& block : w_.blocks) {
    block.norm.apply(x_.data(), w_.norm_eps, normed_.data());
    block.up.apply(normed_.data(), wide_.data());
    head_kernels::gelu(wide_.data(), block.up.out);
    block.down.apply(wide_.data(), normed_.data());
    head_kernels::add(x_.data(), normed_.data(), x_.size());
  }
  w_.output_norm.apply(x_.data(), w_.norm_eps, normed_.data());
  float logit = 0;
  w_.output.apply(normed_.data(), &logit);
  return head_kernels::sigmoid(logit);
}

head_program r2r_network::program() const {
  using kind = head_step::kind;
  const std::uint32_t hidden = w_.logits.out, joined = w_.combined.in, width = w_.input.out;
  const std::uint32_t top_at = joined, projected_at = top_at + w_.logits.in,
                      x_at = projected_at + w_.combined.out, normed_at = x_at + width,
                      wide_at = normed_at + width,
                      output_at = wide_at + static_cast<std::uint32_t>(wide_.size());
  head_program p{.floats = output_at + 1,
                 .hidden_at = 0,
                 .embedding_at = static_cast<std::int32_t>(hidden),
                 .top_logits_at = static_cast<std::int32_t>(top_at),
                 .output_at = output_at};
  const auto norm = [&](const norm_layer& layer) {
    return head_step{.what = kind::layer_norm,
                     .from = x_at,
                     .to = normed_at,
                     .scale = layer.scale,
                     .shift = layer.shift,
                     .eps = w_.norm_eps};
  };
  p.steps = {{.from = top_at, .to = joined - hidden, .dense = &w_.logits},
             {.from = 0, .to = projected_at, .dense = &w_.combined},
             {.from = projected_at, .to = x_at, .dense = &w_.input}};
  for (const auto& block : w_.blocks) {
    p.steps.push_back(norm(block.norm));
    p.steps.push_back({.after = head_step::activation::gelu,
                       .from = normed_at,
                       .to = wide_at,
                       .dense = &block.up});
    p.steps.push_back({.accumulate = true, .from = wide_at, .to = x_at, .dense = &block.down});
  }
  p.steps.push_back(norm(w_.output_norm));
  p.steps.push_back({.from = normed_at, .to = output_at, .dense = &w_.output});
  return p;
}

result<r2r_network> r2r_network::load(const head_spec& spec, std::uint32_t hidden,
                                      std::uint32_t embedding) {
  auto description = read_head_description(spec);
  if (!description)
    return tl::unexpected(description.error());
  auto file = head_file::open(spec);
  if (!file)
    return tl::unexpected(file.error());
  r2r_network_weights weights;
  weights.norm_eps = description->norm_eps;
  reader r;
  if (!read_weights(*file, hidden, embedding, r, weights))
    return tl::unexpected(r.take_error());
  if (weights.blocks.empty())
    return fail(errc::mismatch, spec.weights.string() + ": tensor '" + block_prefix(0) +
                                    ".layer_norm.weight' is missing");
  for (std::size_t i = 0; i < weights.blocks.size(); ++i)
    if (file->has(block_prefix(i) + ".dim_change.weight"))
      return fail(errc::mismatch, spec.weights.string() + ": tensor '" + block_prefix(i) +
                                      ".dim_change.weight': blocks that change width are not "
                                      "supported");
  if (weights.logits.in > limits::top_logits_max)
    return fail(errc::mismatch, spec.weights.string() +
                                    ": tensor 'logits_projection.weight' wants " +
                                    std::to_string(weights.logits.in) + " logits, at most " +
                                    std::to_string(limits::top_logits_max) + " are supported");
  return r2r_network(std::move(weights));
}

} // namespace tokenrouter
