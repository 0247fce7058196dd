#pragma once

#include "runtime/methods/method.hpp"
#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

namespace tokenrouter {

/// Makes the role of model `self`. Errors: invalid_argument (unknown role, strategy, or a
/// parameter missing), each naming what is known.
role_result make_role(model_id self, const method_topology& topology,
                      const method_parameters& parameters);

/// Makes the rule by which requests of this topology start; most start on topology.entry with an
/// empty state. Errors: invalid_argument.
entry_result make_entry(const method_topology& topology, const method_parameters& parameters);

} // namespace tokenrouter
