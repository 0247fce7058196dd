#pragma once

#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "runtime/config/yaml_view.hpp"

namespace tokenrouter {

/// Writes "key=value" overrides into a parsed config, in their order, and notes where they went. A
/// job-wide name takes the place of what single models say. A key that is not dotted text or a
/// value that is not YAML is a fault.
void apply_overrides(YAML::Node& root, const std::vector<std::string>& overrides,
                     config_reading& reading);

} // namespace tokenrouter
