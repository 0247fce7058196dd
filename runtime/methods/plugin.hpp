#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/methods/method.hpp"
#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

/// A method of the user's own: a shared library, named by the config's `method.library`, that makes
/// the roles of a job with `system.method: custom`. Its source ends with TOKENROUTER_METHOD; see
/// examples/custom_method. C++ values pass between program and library, so both are built from the
/// same headers by compatible compilers; `method_abi` tells where they are not. Roles and entries
/// don't throw once they are made: an exception of theirs ends the job.
namespace tokenrouter {

/// A role that the library makes. The name is the config's `scheduler`, free to choose. A factory
/// returns its errors, or throws: value() of a result that holds one comes out as that error.
struct library_role {
  std::string_view name;
  role_result (*make)(model_id self, const method_topology&, const method_parameters&);
};

/// Raise it with a change of this interface that no size shows: of virtual functions, of the order
/// or the meaning of fields.
inline constexpr std::uint16_t method_interface_version = 2;

/// Version (upper 16 bits) and a digest of the compiler's ABI and the sizes of all that passes
/// between program and library. The two must be built with the same one.
constexpr std::uint64_t method_abi() {
  constexpr std::uint64_t facts[] = {
      __GXX_ABI_VERSION,      sizeof(std::string),     sizeof(library_role),
      sizeof(method_state),   sizeof(role_needs),      sizeof(route_input),
      sizeof(route_decision), sizeof(receive_input),   sizeof(start_input),
      sizeof(request_start),  sizeof(method_topology), sizeof(method_parameters),
      sizeof(role_result),    sizeof(entry_result)};
  std::uint64_t digest = 0xcbf29ce484222325; // FNV-1a
  for (const std::uint64_t fact : facts)
    for (unsigned shift = 0; shift < 64; shift += 8)
      digest = (digest ^ ((fact >> shift) & 0xff)) * 0x100000001b3;
  return (std::uint64_t{method_interface_version} << 48) | (digest & 0xffffffffffff);
}

/// The entry points that the program looks up by name. None of them throws.
extern "C" {
using method_abi_function = std::uint64_t() noexcept;
using make_role_function = void(model_id self, const method_topology& topology,
                                const method_parameters& parameters, role_result& out) noexcept;
/// Optional: without it, requests start on topology.entry with an empty state.
using make_entry_function = void(const method_topology& topology,
                                 const method_parameters& parameters, entry_result& out) noexcept;
}

/// Makes the role of model `self` by the first entry with its name. Errors: invalid_argument (no
/// such role; the known ones are named), internal (another exception), and the factory's own.
role_result make_library_role(std::span<const library_role> roles, model_id self,
                              const method_topology& topology, const method_parameters& parameters);

/// What `make` returns. Errors: as above.
entry_result
make_library_entry(entry_result (*make)(const method_topology&, const method_parameters&),
                   const method_topology& topology, const method_parameters& parameters);

} // namespace tokenrouter

#define TOKENROUTER_ENTRY_POINT extern "C" __attribute__((visibility("default")))

/// Defines the entry points of a library: TOKENROUTER_METHOD({"name", make_role}, …);
#define TOKENROUTER_METHOD(...)                                                                    \
  TOKENROUTER_ENTRY_POINT std::uint64_t tokenrouter_method_abi() noexcept {                        \
    return ::tokenrouter::method_abi();                                                            \
  }                                                                                                \
  TOKENROUTER_ENTRY_POINT void tokenrouter_make_role(                                              \
      ::tokenrouter::model_id self, const ::tokenrouter::method_topology& topology,                \
      const ::tokenrouter::method_parameters& parameters,                                          \
      ::tokenrouter::role_result& out) noexcept {                                                  \
    static constexpr ::tokenrouter::library_role roles[] = {__VA_ARGS__};                          \
    out = ::tokenrouter::make_library_role(roles, self, topology, parameters);                     \
  }                                                                                                \
  static_assert(true)

/// Adds the rule by which requests start: TOKENROUTER_METHOD_ENTRY(make_entry);
#define TOKENROUTER_METHOD_ENTRY(make)                                                             \
  TOKENROUTER_ENTRY_POINT void tokenrouter_make_entry(                                             \
      const ::tokenrouter::method_topology& topology,                                              \
      const ::tokenrouter::method_parameters& parameters,                                          \
      ::tokenrouter::entry_result& out) noexcept {                                                 \
    out = ::tokenrouter::make_library_entry(make, topology, parameters);                           \
  }                                                                                                \
  static_assert(true)
