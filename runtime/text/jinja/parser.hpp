#pragma once

#include <string_view>

#include "runtime/text/jinja/syntax.hpp"

namespace tokenrouter::jinja {

/// Parses a template. Fault: malformed, with the line; a tag, filter or test that is not known is
/// named, a filter or test inside a branch only when it is run (as in Jinja2).
block parse_template(std::string_view source);

} // namespace tokenrouter::jinja
