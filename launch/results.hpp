#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/local_messages.hpp"

namespace tokenrouter {

std::string_view to_string(finish_reason reason);

/// One output line of `generate`: `id`, `text`, `token_ids`, `models` (the one that made each
/// token), `scores` (of the routing decision at each position; null: none), `finish_reason`,
/// `usage`, `timing_ms`, and `error` where the request failed.
std::string result_line(const std::string& id, const request_done& done,
                        const std::vector<std::string>& model_names, std::uint32_t prompt_tokens);

} // namespace tokenrouter
