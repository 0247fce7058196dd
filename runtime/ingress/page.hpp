#pragma once

#include <string_view>

namespace tokenrouter {

/// page.html, whole: a chat that colours each token by the model that wrote it.
std::string_view page_html();

} // namespace tokenrouter
