#pragma once

#include <string>

#include "runtime/methods/method.hpp"

/// R2R (arXiv 2505.21600): the small model forwards every position; where its proposal is judged
/// divergent it is dropped and the large model makes that one token, then the turn comes back.
namespace tokenrouter {

enum class r2r_strategy : std::uint8_t {
  neural,  ///< head score ≥ threshold
  entropy, ///< entropy of the full vocabulary in nats ≥ threshold
};

/// Role `r2r_slm`.
class r2r_small final : public method_role {
 public:
  r2r_small(model_id large, r2r_strategy strategy, double threshold)
      : large_(large), strategy_(strategy), threshold_(threshold) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id large_;
  r2r_strategy strategy_;
  double threshold_;
};

/// Role `r2r_llm`: makes one token and hands back, unconditionally.
class r2r_large final : public method_role {
 public:
  explicit r2r_large(model_id small) : small_(small) {}

  role_needs needs() const override { return {}; }
  route_decision route(const route_input&, method_state&) const override {
    return {route_action::go_keep, small_, no_score};
  }

 private:
  model_id small_;
};

} // namespace tokenrouter
