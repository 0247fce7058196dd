#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/methods/parameters.hpp"

namespace tokenrouter {

/// A value of `system.method` and what it asks of the job's models.
struct method_shape {
  std::string_view name;
  /// One role: every model has it, and it need not be given. Two: one model has each, and requests
  /// start on the first. None (`custom`): any.
  std::string_view roles[2];
  std::uint32_t models_min = 1;
  std::uint32_t models_max = 1;
  bool entry_is_first = false; ///< requests start on the first model of the file

  bool is_pair() const { return !roles[1].empty(); }
  bool is_custom() const { return roles[0].empty(); }
};

/// Every method, in the order of the documentation.
std::span<const method_shape> known_methods();

/// Null for a name that is none.
const method_shape* find_method(std::string_view name);

std::span<const std::string_view> method_names();
std::span<const std::string_view> role_names();

/// What is wrong with giving `method.KEY` to this method: who reads it, or which other parameter
/// would have to change. Empty if the key has an effect.
std::string why_without_effect(std::string_view key, std::string_view method,
                               const method_parameters& parameters);

} // namespace tokenrouter
