#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/methods/method.hpp"

namespace tokenrouter {

/// Parameters of the config's `method` section, as far as roles read them.
struct method_parameters {
  std::string switching_strategy;
  std::optional<double> threshold;
  std::vector<double> thresholds;
};

/// The models of the job and their roles, in the order of the config.
struct method_topology {
  std::vector<std::string> roles; ///< index = model_id
  model_id entry;
};

/// The models that hold `role`, in order.
std::vector<model_id> models_with_role(const method_topology& topology, std::string_view role);

/// Makes the role of model `self`. Errors: invalid_argument (unknown role, strategy, or a
/// parameter missing), each naming what is known.
result<std::unique_ptr<method_role>> make_role(model_id self, const method_topology& topology,
                                               const method_parameters& parameters);

} // namespace tokenrouter
