#pragma once

#include "runtime/config/config.hpp"
#include "runtime/config/yaml_view.hpp"

namespace tokenrouter {

/// Notes what does not hold between the method, its parameters and the models' number and roles.
void validate_method(const job_config& config, config_reading& reading);

} // namespace tokenrouter
