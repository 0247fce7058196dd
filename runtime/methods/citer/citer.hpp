#pragma once

#include <string>

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

/// CITER (arXiv 2502.01976): as R2R, but the small model's confidence head decides from the hidden
/// state alone. The large side (`citer_llm`) is single_token_role.
namespace tokenrouter {

/// Role `citer_slm`: large where confidence < threshold, strictly.
class citer_small final : public method_role {
 public:
  /// `head`: "citer", or "citer_unfolded" for the reference form of the same weights.
  citer_small(model_id large, std::string head, double threshold)
      : large_(large), head_(std::move(head)), threshold_(threshold) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id large_;
  std::string head_;
  double threshold_;
};

/// Without a threshold: 0.5. Error: invalid_argument.
role_result make_citer_small(model_id self, const method_topology& topology,
                             const method_parameters& parameters);
role_result make_citer_large(model_id self, const method_topology& topology,
                             const method_parameters& parameters);

} // namespace tokenrouter
