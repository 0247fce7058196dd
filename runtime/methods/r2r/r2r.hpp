#pragma once

#include <memory>

#include "runtime/methods/plain/single_token.hpp"
#include "runtime/methods/r2r/switching.hpp"
#include "runtime/methods/topology.hpp"

/// R2R (arXiv 2505.21600): the small model forwards every position; where its proposal is judged
/// divergent it is dropped and the large model makes that one token, then the turn comes back. The
/// large side (`r2r_llm`) is single_token_role.
namespace tokenrouter {

/// Role `r2r_slm`.
class r2r_small final : public method_role {
 public:
  r2r_small(model_id large, std::unique_ptr<const switching_strategy> strategy)
      : large_(large), strategy_(std::move(strategy)) {}

  role_needs needs() const override { return strategy_->needs(); }
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id large_;
  std::unique_ptr<const switching_strategy> strategy_;
};

role_result make_r2r_small(model_id self, const method_topology& topology,
                           const method_parameters& parameters);
role_result make_r2r_large(model_id self, const method_topology& topology,
                           const method_parameters& parameters);

} // namespace tokenrouter
