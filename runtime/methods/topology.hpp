#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/methods/method.hpp"

namespace tokenrouter {

/// The models of the job and their roles, in the order of the config.
struct method_topology {
  std::vector<std::string> roles; ///< index = model_id
  model_id entry;
};

using role_result = result<std::unique_ptr<method_role>>;
using entry_result = result<std::unique_ptr<method_entry>>;

/// Every request starts on one model, with an empty state.
class fixed_entry final : public method_entry {
 public:
  explicit fixed_entry(model_id model) : model_(model) {}
  request_start start(const start_input&) const override { return {model_, {}}; }

 private:
  model_id model_;
};

/// The models that hold `role`, in order.
std::vector<model_id> models_with_role(const method_topology& topology, std::string_view role);

/// The one model that holds `role`. Error: invalid_argument, where none or several do.
result<model_id> only_model_with(const method_topology& topology, std::string_view role);

/// Of two models that share one role: the one that is not the entry. Error: invalid_argument, where
/// the job has another number of models.
result<model_id> other_than_entry(const method_topology& topology);

} // namespace tokenrouter
