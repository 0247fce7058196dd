#pragma once

#include <utility>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/exec/heads/head.hpp"
#include "runtime/exec/heads/head_file.hpp"
#include "runtime/exec/heads/kernels.hpp"

namespace tokenrouter {

/// sigmoid(out(relu(up(h)))) of the hidden state alone.
class relu_head final : public routing_head {
 public:
  /// `up`: hidden → wide; `out`: wide → 1.
  relu_head(dense_layer up, dense_layer out) : up_(std::move(up)), out_(std::move(out)) {
    wide_.resize(up_.out);
  }

  std::uint32_t top_logits_wanted() const override { return 0; }
  bool wants_proposed_embedding() const override { return false; }

  float score(const head_input& in) override {
    check(in.hidden.size() == up_.in, "a head gets the hidden state of its model");
    up_.apply(in.hidden.data(), wide_.data());
    head_kernels::relu(wide_.data(), wide_.size());
    float logit = 0;
    out_.apply(wide_.data(), &logit);
    return head_kernels::sigmoid(logit);
  }

  std::uint64_t weight_bytes() const override { return up_.bytes() + out_.bytes(); }

  head_program program() const override {
    const std::uint32_t wide_at = up_.in, output_at = wide_at + up_.out;
    head_program p{.floats = output_at + 1, .hidden_at = 0, .output_at = output_at};
    p.steps = {{.after = head_step::activation::relu, .from = 0, .to = wide_at, .dense = &up_},
               {.from = wide_at, .to = output_at, .dense = &out_}};
    return p;
  }

 private:
  dense_layer up_;
  dense_layer out_;
  std::vector<float> wide_;
};

} // namespace tokenrouter
