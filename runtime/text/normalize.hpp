#pragma once

#include <string>
#include <string_view>

namespace tokenrouter {

/// Unicode normalisation form C. Requires valid UTF-8. Takes n log n time even for long runs of
/// combining marks.
std::string to_nfc(std::string_view text);

/// Unicode White_Space.
bool is_space(char32_t code_point);

} // namespace tokenrouter
