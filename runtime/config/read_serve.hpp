#pragma once

#include "runtime/config/serve_settings.hpp"
#include "runtime/config/yaml_view.hpp"

namespace tokenrouter {

/// Section `serve`, but for its paths.
void read_serve(const yaml_view& view, serve_settings& out);

} // namespace tokenrouter
