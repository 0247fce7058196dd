#include "runtime/methods/registry.hpp"

#include <array>
#include <string_view>

#include "runtime/methods/cascade/cascade.hpp"
#include "runtime/methods/plain/plain.hpp"
#include "runtime/methods/r2r/r2r.hpp"

namespace tokenrouter {

namespace {

using role_ptr = std::unique_ptr<method_role>;

result<role_ptr> make_plain(model_id, const method_topology&, const method_parameters&) {
  return std::make_unique<plain_role>();
}

result<model_id> only_model_with(const method_topology& topology, std::string_view role) {
  const auto models = models_with_role(topology, role);
  if (models.size() != 1)
    return fail(errc::invalid_argument,
                "method r2r needs exactly one model with scheduler: " + std::string(role) +
                    "; the config has " + std::to_string(models.size()));
  return models.front();
}

result<role_ptr> make_r2r_small(model_id, const method_topology& topology,
                                const method_parameters& parameters) {
  auto large = only_model_with(topology, "r2r_llm");
  if (!large)
    return tl::unexpected(large.error());
  r2r_strategy strategy;
  if (parameters.switching_strategy == "neural")
    strategy = r2r_strategy::neural;
  else if (parameters.switching_strategy == "entropy")
    strategy = r2r_strategy::entropy;
  else
    return fail(errc::invalid_argument, "method.switching_strategy: unknown strategy '" +
                                            parameters.switching_strategy +
                                            "'; known: neural, entropy");
  if (!parameters.threshold)
    return fail(errc::invalid_argument, "method.threshold: r2r needs one, and neither the config "
                                        "nor the router's JSON gives it");
  return std::make_unique<r2r_small>(*large, strategy, *parameters.threshold);
}

result<role_ptr> make_r2r_large(model_id, const method_topology& topology,
                                const method_parameters&) {
  auto small = only_model_with(topology, "r2r_slm");
  if (!small)
    return tl::unexpected(small.error());
  return std::make_unique<r2r_large>(*small);
}

result<role_ptr> make_cascade(model_id self, const method_topology& topology,
                              const method_parameters& parameters) {
  const auto stages = models_with_role(topology, "cascade");
  if (parameters.thresholds.size() + 1 != stages.size())
    return fail(errc::invalid_argument,
                "method.thresholds: a cascade of " + std::to_string(stages.size()) +
                    " models needs " + std::to_string(stages.size() - 1) + " thresholds, not " +
                    std::to_string(parameters.thresholds.size()));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i] != self)
      continue;
    const bool last = i + 1 == stages.size();
    return std::make_unique<cascade_stage>(self, stages.front(),
                                           last ? std::nullopt : std::optional(stages[i + 1]),
                                           last ? 0.0 : parameters.thresholds[i]);
  }
  return fail(errc::invalid_argument, "this model is no stage of the cascade");
}

struct registry_entry {
  std::string_view role;
  result<role_ptr> (*make)(model_id, const method_topology&, const method_parameters&);
};

constexpr std::array registry{
    registry_entry{"plain", make_plain},
    registry_entry{"r2r_slm", make_r2r_small},
    registry_entry{"r2r_llm", make_r2r_large},
    registry_entry{"cascade", make_cascade},
};

} // namespace

std::vector<model_id> models_with_role(const method_topology& topology, std::string_view role) {
  std::vector<model_id> found;
  for (std::size_t i = 0; i < topology.roles.size(); ++i)
    if (topology.roles[i] == role)
      found.push_back({static_cast<std::uint16_t>(i)});
  return found;
}

result<role_ptr> make_role(model_id self, const method_topology& topology,
                           const method_parameters& parameters) {
  check(self.value < topology.roles.size(), "a role is made for a model of the topology");
  const std::string& role = topology.roles[self.value];
  std::string known;
  for (const auto& entry : registry) {
    if (entry.role == role)
      return entry.make(self, topology, parameters);
    known += (known.empty() ? "" : ", ") + std::string(entry.role);
  }
  return fail(errc::invalid_argument, "unknown scheduler '" + role + "'; known: " + known);
}

} // namespace tokenrouter
