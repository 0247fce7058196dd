#pragma once

#include <memory>
#include <string_view>

#include "runtime/methods/topology.hpp"

namespace tokenrouter {

/// The large side of R2R, CITER, Co-LLM and random_routing's mode r2r: makes one token, keeps it
/// and hands back, unconditionally.
class single_token_role final : public method_role {
 public:
  explicit single_token_role(model_id small) : small_(small) {}

  role_needs needs() const override { return {}; }
  route_decision route(const route_input&, method_state&) const override {
    return {route_action::go_keep, small_, no_score};
  }

 private:
  model_id small_;
};

/// For the one small model with that role.
inline role_result make_single_token(const method_topology& topology, std::string_view small_role) {
  const auto small = only_model_with(topology, small_role);
  if (!small)
    return tl::unexpected(small.error());
  return std::make_unique<single_token_role>(*small);
}

} // namespace tokenrouter
