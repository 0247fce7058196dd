#pragma once

#include <cstdint>
#include <string>

#include "runtime/ingress/call_parser.hpp"

namespace tokenrouter {

/// /tokenize: `prompt` or `messages` to `{"count", "max_model_len", "tokens"}`.
api_result<std::string> tokenize_answer(const std::string& body, const call_tools& tools,
                                        std::uint32_t context_tokens_max);

/// /detokenize: `tokens` to `{"prompt"}`.
api_result<std::string> detokenize_answer(const std::string& body, const call_tools& tools);

} // namespace tokenrouter
