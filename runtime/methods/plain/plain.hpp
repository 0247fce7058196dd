#pragma once

#include "runtime/methods/method.hpp"

namespace tokenrouter {

/// One model decodes alone: role `plain`.
class plain_role final : public method_role {
 public:
  role_needs needs() const override { return {}; }
  route_decision route(const route_input&, method_state&) const override { return {}; }
};

} // namespace tokenrouter
