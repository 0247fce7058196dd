#pragma once

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

/// R-Stitch (arXiv 2507.17307): whichever model runs looks at the entropy H of its own prediction.
/// The small model hands over where H > τ and its proposal is dropped; the large one writes on
/// until H ≤ τ and by default keeps that token, so each round commits at least one.
namespace tokenrouter {

enum class entropy_unit : std::uint8_t { normalised, nats };

/// Role `rstitch_slm`.
class rstitch_small final : public method_role {
 public:
  /// `asks_head`: R-Stitch+, experimental. Where H > τ, head "rstitch" has the last word: to the
  /// large model at a score ≥ 0.5.
  rstitch_small(model_id large, double threshold, entropy_unit unit, bool asks_head)
      : large_(large), threshold_(threshold), unit_(unit), asks_head_(asks_head) {}

  role_needs needs() const override;
  /// The decision's score is H.
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id large_;
  double threshold_;
  entropy_unit unit_;
  bool asks_head_;
};

/// Role `rstitch_llm`.
class rstitch_large final : public method_role {
 public:
  /// `keeps_token`: its token of the position where it hands back stays; else it is dropped and the
  /// small model commits its own there, unasked.
  rstitch_large(model_id small, double threshold, entropy_unit unit, bool keeps_token)
      : small_(small), threshold_(threshold), unit_(unit), keeps_token_(keeps_token) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id small_;
  double threshold_;
  entropy_unit unit_;
  bool keeps_token_;
};

/// Without a threshold: 0.03, normalised. Errors: invalid_argument (no single peer, nats without a
/// threshold, an unknown unit or on_return).
role_result make_rstitch_small(model_id self, const method_topology& topology,
                               const method_parameters& parameters);
role_result make_rstitch_large(model_id self, const method_topology& topology,
                               const method_parameters& parameters);

} // namespace tokenrouter
