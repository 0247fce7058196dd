#pragma once

#include "runtime/config/config.hpp"
#include "runtime/config/yaml_view.hpp"

namespace tokenrouter {

/// Checks what no single value shows: references between entries, files on disk, what a method
/// needs of models and parameters. Notes its faults in `reading`.
void validate(const job_config& config, config_reading& reading);

} // namespace tokenrouter
