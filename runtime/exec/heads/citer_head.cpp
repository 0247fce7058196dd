#include "runtime/exec/heads/citer_head.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/exec/heads/head_file.hpp"
#include "runtime/exec/heads/kernels.hpp"
#include "runtime/exec/heads/relu_head.hpp"

namespace tokenrouter {

namespace {

constexpr double batch_norm_eps = 1e-5;

/// Batch norm with running statistics, all [count].
struct batch_norm {
  std::vector<float> scale, shift, mean, variance;

  double factor(std::size_t i) const {
    return double{scale[i]} / std::sqrt(double{variance[i]} + batch_norm_eps);
  }
};

struct citer_weights {
  dense_layer up;   ///< mlp.0: hidden → wide
  batch_norm norm;  ///< mlp.1
  dense_layer down; ///< mlp.4: wide → narrow
  dense_layer last; ///< linear: narrow → 1
};

result<batch_norm> read_batch_norm(const head_file& file, std::uint32_t count) {
  batch_norm out;
  const std::pair<const char*, std::vector<float>*> parts[] = {
      {"mlp.1.weight", &out.scale},
      {"mlp.1.bias", &out.shift},
      {"mlp.1.running_mean", &out.mean},
      {"mlp.1.running_var", &out.variance}};
  for (const auto& [name, part] : parts) {
    auto values = file.vector(name, count);
    if (!values)
      return tl::unexpected(values.error());
    *part = std::move(*values);
  }
  return out;
}

result<citer_weights> read_weights(const head_spec& spec, std::uint32_t hidden_size) {
  const auto file = head_file::open_described(spec);
  if (!file)
    return tl::unexpected(file.error());
  const auto wide = file->extent("mlp.0.weight", 0, 2);
  if (!wide)
    return tl::unexpected(wide.error());
  auto up = file->dense("mlp.0", hidden_size, *wide);
  if (!up)
    return tl::unexpected(up.error());
  auto norm = read_batch_norm(*file, *wide);
  if (!norm)
    return tl::unexpected(norm.error());
  const auto narrow = file->extent("mlp.4.weight", 0, 2);
  if (!narrow)
    return tl::unexpected(narrow.error());
  auto down = file->dense("mlp.4", *wide, *narrow);
  if (!down)
    return tl::unexpected(down.error());
  auto last = file->dense("linear", *narrow, 1);
  if (!last)
    return tl::unexpected(last.error());
  return citer_weights{std::move(*up), std::move(*norm), std::move(*down), std::move(*last)};
}

/// The layer that is `norm` after `layer`.
dense_layer fold(dense_layer layer, const batch_norm& norm) {
  for (std::size_t o = 0; o < layer.out; ++o) {
    const double factor = norm.factor(o);
    for (std::size_t i = 0; i < layer.in; ++i) {
      float& w = layer.weight[i * layer.out + o];
      w = static_cast<float>(double{w} * factor);
    }
    layer.bias[o] = static_cast<float>((double{layer.bias[o]} - double{norm.mean[o]}) * factor +
                                       double{norm.shift[o]});
  }
  return layer;
}

/// The layer that is `second` after `first`; `second` has one output.
dense_layer compose(const dense_layer& first, const dense_layer& second) {
  dense_layer out{first.in, 1, std::vector<float>(first.in), {}};
  for (std::size_t i = 0; i < first.in; ++i) {
    double sum = 0;
    for (std::size_t m = 0; m < first.out; ++m)
      sum += double{first.weight[i * first.out + m]} * double{second.weight[m]};
    out.weight[i] = static_cast<float>(sum);
  }
  double bias = double{second.bias[0]};
  for (std::size_t m = 0; m < first.out; ++m)
    bias += double{first.bias[m]} * double{second.weight[m]};
  out.bias = {static_cast<float>(bias)};
  return out;
}

/// Layer by layer.
class citer_unfolded_head final : public routing_head {
 public:
  explicit citer_unfolded_head(citer_weights weights) : w_(std::move(weights)) {
    wide_.resize(w_.up.out);
    narrow_.resize(w_.down.out);
  }

  std::uint32_t top_logits_wanted() const override { return 0; }
  bool wants_proposed_embedding() const override { return false; }

  float score(const head_input& in) override {
    check(in.hidden.size() == w_.up.in, "a citer head gets the hidden state of its model");
    w_.up.apply(in.hidden.data(), wide_.data());
    for (std::size_t i = 0; i < wide_.size(); ++i)
      wide_[i] =
          (wide_[i] - w_.norm.mean[i]) * static_cast<float>(w_.norm.factor(i)) + w_.norm.shift[i];
    head_kernels::relu(wide_.data(), wide_.size());
    w_.down.apply(wide_.data(), narrow_.data());
    float logit = 0;
    w_.last.apply(narrow_.data(), &logit);
    return head_kernels::sigmoid(logit);
  }

  std::uint64_t weight_bytes() const override {
    return w_.up.bytes() + 4 * wide_.size() * sizeof(float) + w_.down.bytes() + w_.last.bytes();
  }

  head_program program() const override {
    const std::uint32_t wide_at = w_.up.in, narrow_at = wide_at + w_.up.out,
                        output_at = narrow_at + w_.down.out;
    head_program p{.floats = output_at + 1, .hidden_at = 0, .output_at = output_at};
    head_step norm{.what = head_step::kind::batch_norm,
                   .after = head_step::activation::relu,
                   .from = wide_at,
                   .to = wide_at,
                   .shift = w_.norm.shift,
                   .mean = w_.norm.mean};
    for (std::size_t i = 0; i < w_.norm.scale.size(); ++i)
      norm.scale.push_back(static_cast<float>(w_.norm.factor(i)));
    p.steps = {{.from = 0, .to = wide_at, .dense = &w_.up},
               std::move(norm),
               {.from = wide_at, .to = narrow_at, .dense = &w_.down},
               {.from = narrow_at, .to = output_at, .dense = &w_.last}};
    return p;
  }

 private:
  citer_weights w_;
  std::vector<float> wide_, narrow_;
};

} // namespace

result<std::unique_ptr<routing_head>> load_citer_head(const head_spec& spec,
                                                      std::uint32_t hidden_size) {
  auto weights = read_weights(spec, hidden_size);
  if (!weights)
    return tl::unexpected(weights.error());
  return std::make_unique<relu_head>(fold(std::move(weights->up), weights->norm),
                                     compose(weights->down, weights->last));
}

result<std::unique_ptr<routing_head>> load_citer_unfolded_head(const head_spec& spec,
                                                               std::uint32_t hidden_size) {
  auto weights = read_weights(spec, hidden_size);
  if (!weights)
    return tl::unexpected(weights.error());
  return std::make_unique<citer_unfolded_head>(std::move(*weights));
}

} // namespace tokenrouter
