#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "runtime/core/error.hpp"
#include "runtime/methods/parameters.hpp"

/// Readers of `method.options`, for methods of the user's own.
namespace tokenrouter {

/// The option as a number from `low` to `high`; `fallback` where it is left out. Error:
/// invalid_argument, naming the option.
result<double> number_option(const method_parameters& parameters, const std::string& name,
                             double low, double high, double fallback);

/// Error: invalid_argument, where the config gives an option that is none of `known`.
result<void> check_options(const method_parameters& parameters,
                           std::initializer_list<std::string_view> known);

} // namespace tokenrouter
