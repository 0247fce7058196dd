#pragma once

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

namespace tokenrouter {

/// One model decodes alone: role `plain`.
class plain_role final : public method_role {
 public:
  role_needs needs() const override { return {}; }
  route_decision route(const route_input&, method_state&) const override { return {}; }
};

inline role_result make_plain(model_id, const method_topology&, const method_parameters&) {
  return std::make_unique<plain_role>();
}

} // namespace tokenrouter
