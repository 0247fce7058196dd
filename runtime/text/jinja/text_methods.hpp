#pragma once

#include <span>
#include <string_view>

#include "runtime/text/jinja/registry.hpp"

namespace tokenrouter::jinja {

struct method {
  std::string_view name;
  filter_function run; ///< its input is what the method is called on
};

/// Python's methods of str.
std::span<const method> text_methods();

} // namespace tokenrouter::jinja
