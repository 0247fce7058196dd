#include "runtime/methods/plugin.hpp"

#include <exception>

namespace tokenrouter {

namespace {

/// What `make` returns; an error where it throws.
template <class Result, class Make>
Result caught(const std::string& what, Make make) {
  try {
    return make();
  } catch (const tl::bad_expected_access<error>& e) {
    return tl::unexpected(e.error());
  } catch (const std::exception& e) {
    return fail(errc::internal, what + " threw: " + e.what());
  } catch (...) {
    return fail(errc::internal, what + " threw something that is no std::exception");
  }
}

} // namespace

role_result make_library_role(std::span<const library_role> roles, model_id self,
                              const method_topology& topology,
                              const method_parameters& parameters) {
  check(self.value < topology.roles.size(), "a role is made for a model of the topology");
  const std::string& wanted = topology.roles[self.value];
  std::string known;
  for (const library_role& role : roles) {
    if (role.name == wanted)
      return caught<role_result>("the factory of scheduler '" + wanted + "'",
                                 [&] { return role.make(self, topology, parameters); });
    known += (known.empty() ? "" : ", ") + std::string(role.name);
  }
  return fail(errc::invalid_argument,
              "unknown scheduler '" + wanted + "'; the library has: " + known);
}

entry_result
make_library_entry(entry_result (*make)(const method_topology&, const method_parameters&),
                   const method_topology& topology, const method_parameters& parameters) {
  return caught<entry_result>("the factory of the entry",
                              [&] { return make(topology, parameters); });
}

} // namespace tokenrouter
