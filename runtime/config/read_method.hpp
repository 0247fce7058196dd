#pragma once

#include "runtime/config/config.hpp"
#include "runtime/config/yaml_view.hpp"

namespace tokenrouter {

/// Reads the section `method`, its paths excepted (they are the caller's to resolve), into
/// `method.parameters`. Requires method.name.
void read_method_parameters(const yaml_view& view, method_settings& method);

} // namespace tokenrouter
