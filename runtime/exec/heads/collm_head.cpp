#include "runtime/exec/heads/collm_head.hpp"

#include <utility>

#include "runtime/core/check.hpp"
#include "runtime/exec/heads/head_file.hpp"
#include "runtime/exec/heads/kernels.hpp"

namespace tokenrouter {

namespace {

class collm_head final : public routing_head {
 public:
  explicit collm_head(dense_layer defer) : defer_(std::move(defer)) {}

  std::uint32_t top_logits_wanted() const override { return 0; }
  bool wants_proposed_embedding() const override { return false; }

  float score(const head_input& in) override {
    check(in.hidden.size() == defer_.in, "a collm head gets the hidden state of its model");
    float logit = 0;
    defer_.apply(in.hidden.data(), &logit);
    return head_kernels::sigmoid(logit);
  }

  std::uint64_t weight_bytes() const override { return defer_.bytes(); }

  head_program program() const override {
    head_program p{.floats = defer_.in + 1, .hidden_at = 0, .output_at = defer_.in};
    p.steps = {{.from = 0, .to = p.output_at, .dense = &defer_}};
    return p;
  }

 private:
  dense_layer defer_; ///< hidden → 1
};

} // namespace

result<std::unique_ptr<routing_head>> load_collm_head(const head_spec& spec,
                                                      std::uint32_t hidden_size) {
  auto file = head_file::open_described(spec);
  if (!file)
    return tl::unexpected(file.error());
  auto defer = file->dense("defer", hidden_size, 1, true);
  if (!defer)
    return tl::unexpected(defer.error());
  return std::make_unique<collm_head>(std::move(*defer));
}

result<std::unique_ptr<routing_head>> load_collm_row_head(const head_spec& spec,
                                                          std::uint32_t hidden_size) {
  if (spec.row < 0)
    return fail(errc::invalid_argument, "a deferral row needs the id of its token");
  auto file = head_file::open(spec);
  if (!file)
    return tl::unexpected(file.error());
  const bool tied = !file->has("lm_head.weight");
  auto defer = file->single_row(tied ? "model.embed_tokens.weight" : "lm_head.weight",
                                static_cast<std::uint32_t>(spec.row), hidden_size);
  if (!defer)
    return tl::unexpected(defer.error());
  return std::make_unique<collm_head>(std::move(*defer));
}

} // namespace tokenrouter
