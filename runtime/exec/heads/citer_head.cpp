#include "runtime/exec/heads/citer_head.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/exec/heads/head_file.hpp"
#include "runtime/exec/heads/kernels.hpp"

namespace tokenrouter {

namespace {

constexpr double batch_norm_eps = 1e-5;

class citer_head final : public routing_head {
 public:
  citer_head(dense_layer up, dense_layer out) : up_(std::move(up)), out_(std::move(out)) {
    wide_.resize(up_.out);
  }

  std::uint32_t top_logits_wanted() const override { return 0; }
  bool wants_proposed_embedding() const override { return false; }

  float score(const head_input& in) override {
    check(in.hidden.size() == up_.in, "a citer head gets the hidden state of its model");
    up_.apply(in.hidden.data(), wide_.data());
    head_kernels::relu(wide_.data(), wide_.size());
    float logit = 0;
    out_.apply(wide_.data(), &logit);
    return head_kernels::sigmoid(logit);
  }

  std::uint64_t weight_bytes() const override { return up_.bytes() + out_.bytes(); }

 private:
  dense_layer up_;  ///< hidden → wide, batch norm folded in
  dense_layer out_; ///< wide → 1, mlp.4 folded in
  std::vector<float> wide_;
};

/// scale · (x − mean) / sqrt(var + eps) + shift, applied to every output of `layer`.
result<void> fold_batch_norm(const head_file& file, dense_layer& layer) {
  std::vector<float> parts[4];
  const char* names[4] = {"mlp.1.weight", "mlp.1.bias", "mlp.1.running_mean", "mlp.1.running_var"};
  for (std::size_t p = 0; p < 4; ++p) {
    auto part = file.vector(names[p], layer.out);
    if (!part)
      return tl::unexpected(part.error());
    parts[p] = std::move(*part);
  }
  const auto& [scale, shift, mean, variance] = parts;
  for (std::size_t o = 0; o < layer.out; ++o) {
    const double factor = double{scale[o]} / std::sqrt(double{variance[o]} + batch_norm_eps);
    for (std::size_t i = 0; i < layer.in; ++i) {
      float& w = layer.weight[i * layer.out + o];
      w = static_cast<float>(double{w} * factor);
    }
    layer.bias[o] =
        static_cast<float>((double{layer.bias[o]} - double{mean[o]}) * factor + double{shift[o]});
  }
  return {};
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

} // namespace

result<std::unique_ptr<routing_head>> load_citer_head(const head_spec& spec,
                                                      std::uint32_t hidden_size) {
  if (auto description = read_head_description(spec); !description)
    return tl::unexpected(description.error());
  auto file = head_file::open(spec);
  if (!file)
    return tl::unexpected(file.error());
  const auto wide = file->extent("mlp.0.weight", 0, 2);
  if (!wide)
    return tl::unexpected(wide.error());
  auto up = file->dense("mlp.0", hidden_size, *wide);
  if (!up)
    return tl::unexpected(up.error());
  if (auto folded = fold_batch_norm(*file, *up); !folded)
    return tl::unexpected(folded.error());
  const auto narrow = file->extent("mlp.4.weight", 0, 2);
  if (!narrow)
    return tl::unexpected(narrow.error());
  const auto down = file->dense("mlp.4", *wide, *narrow);
  if (!down)
    return tl::unexpected(down.error());
  const auto last = file->dense("linear", *narrow, 1);
  if (!last)
    return tl::unexpected(last.error());
  return std::make_unique<citer_head>(std::move(*up), compose(*down, *last));
}

} // namespace tokenrouter
