#pragma once

#include <string>
#include <string_view>

#include "runtime/text/jinja/value.hpp"

/// What templates can call by name. What Jinja2 has and these have not is refused by name.
namespace tokenrouter::jinja {

using filter_function = value (*)(interpreter&, const value& input, call_args&);
using test_function = bool (*)(interpreter&, const value& input, call_args&);

/// Null if unknown.
filter_function find_filter(std::string_view name);
test_function find_test(std::string_view name);

std::string unknown_filter(std::string_view name);
std::string unknown_test(std::string_view name);

/// A function every template sees, such as range; undefined if there is none. Fault: one of
/// Jinja2's that is not supported.
value find_global(std::string_view name);

/// The method `name` of a value, bound to it; undefined, saying why, if its type has none. Fault:
/// one of Python's that is not supported.
value find_method(const value& self, const std::string& name);

} // namespace tokenrouter::jinja
