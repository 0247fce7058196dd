#include "runtime/methods/registry.hpp"

#include <array>
#include <string_view>

#include "runtime/methods/cascade/cascade.hpp"
#include "runtime/methods/citer/citer.hpp"
#include "runtime/methods/collm/collm.hpp"
#include "runtime/methods/glimprouter/glimprouter.hpp"
#include "runtime/methods/plain/plain.hpp"
#include "runtime/methods/query_level/query_level.hpp"
#include "runtime/methods/r2r/r2r.hpp"
#include "runtime/methods/random/per_request_random.hpp"
#include "runtime/methods/random/random_routing.hpp"
#include "runtime/methods/rstitch/rstitch.hpp"
#include "runtime/methods/speculate/speculate.hpp"

namespace tokenrouter {

namespace {

entry_result make_fixed_entry(const method_topology& topology, const method_parameters&) {
  return std::make_unique<fixed_entry>(topology.entry);
}

struct registry_entry {
  std::string_view role;
  role_result (*make)(model_id, const method_topology&, const method_parameters&);
  /// How requests start where the entry model has this role.
  entry_result (*make_entry)(const method_topology&, const method_parameters&) = make_fixed_entry;
};

constexpr std::array registry{
    registry_entry{"plain", make_plain},
    registry_entry{"r2r_slm", make_r2r_small},
    registry_entry{"r2r_llm", make_r2r_large},
    registry_entry{"citer_slm", make_citer_small},
    registry_entry{"citer_llm", make_citer_large},
    registry_entry{"collm_base", make_collm_base},
    registry_entry{"collm_assist", make_collm_assist},
    registry_entry{"rstitch_slm", make_rstitch_small},
    registry_entry{"rstitch_llm", make_rstitch_large},
    registry_entry{"glimprouter_slm", make_glimprouter_small, make_glimprouter_entry},
    registry_entry{"glimprouter_llm", make_glimprouter_large, make_glimprouter_entry},
    registry_entry{"random_routing", make_random_routing, make_random_entry},
    registry_entry{"per_request_random_routing", make_per_request_random,
                   make_per_request_random_entry},
    registry_entry{"query_level_routing", make_query_level, make_query_level_entry},
    registry_entry{"speculate_slm", make_speculate_small},
    registry_entry{"speculate_llm", make_speculate_large},
    registry_entry{"cascade", make_cascade},
};

result<const registry_entry*> entry_of(std::string_view role) {
  std::string known;
  for (const auto& entry : registry) {
    if (entry.role == role)
      return &entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.role);
  }
  return fail(errc::invalid_argument,
              "unknown scheduler '" + std::string(role) + "'; known: " + known);
}

} // namespace

role_result make_role(model_id self, const method_topology& topology,
                      const method_parameters& parameters) {
  check(self.value < topology.roles.size(), "a role is made for a model of the topology");
  const auto entry = entry_of(topology.roles[self.value]);
  if (!entry)
    return tl::unexpected(entry.error());
  return (*entry)->make(self, topology, parameters);
}

entry_result make_entry(const method_topology& topology, const method_parameters& parameters) {
  check(topology.entry.value < topology.roles.size(), "requests start on a model of the topology");
  const auto entry = entry_of(topology.roles[topology.entry.value]);
  if (!entry)
    return tl::unexpected(entry.error());
  return (*entry)->make_entry(topology, parameters);
}

} // namespace tokenrouter
