#pragma once

#include <cstdint>
#include <span>

#include "runtime/ingress/answer_json.hpp"

namespace tokenrouter {

/// `logprobs` of a chat's choice.
answer_json chat_logprobs(const tokenizer& words, std::span<const generated_token> tokens);

/// `logprobs` of a completion's choice. `text_offset` is the first token's place in the text, in
/// characters, and is moved behind the last.
answer_json completion_logprobs(const tokenizer& words, std::span<const generated_token> tokens,
                                std::uint32_t top_logprobs, std::uint64_t& text_offset);

} // namespace tokenrouter
