#include "runtime/methods/topology.hpp"

namespace tokenrouter {

std::vector<model_id> models_with_role(const method_topology& topology, std::string_view role) {
  std::vector<model_id> found;
  for (std::size_t i = 0; i < topology.roles.size(); ++i)
    if (topology.roles[i] == role)
      found.push_back({static_cast<std::uint16_t>(i)});
  return found;
}

result<model_id> only_model_with(const method_topology& topology, std::string_view role) {
  const auto models = models_with_role(topology, role);
  if (models.size() != 1)
    return fail(errc::invalid_argument,
                "the method needs exactly one model with scheduler: " + std::string(role) +
                    "; the config has " + std::to_string(models.size()));
  return models.front();
}

result<model_id> other_than_entry(const method_topology& topology) {
  if (topology.roles.size() != 2)
    return fail(errc::invalid_argument, "the method routes between two models; the config has " +
                                            std::to_string(topology.roles.size()));
  return model_id{static_cast<std::uint16_t>(topology.entry.value == 0 ? 1 : 0)};
}

} // namespace tokenrouter
