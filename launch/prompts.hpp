#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "actors/local_messages.hpp"
#include "runtime/core/error.hpp"
#include "runtime/text/chat_template.hpp"

namespace tokenrouter {

/// Turns prompts into tokens.
struct prompt_tools {
  std::function<result<std::vector<token_id>>(std::string_view)> encode;
  std::function<result<std::string>(const std::vector<chat_message>&, bool enable_thinking)> render;
};

/// What a line leaves unsaid.
struct prompt_defaults {
  std::uint32_t max_new_tokens = 256;
  sampling_params sampling;
};

/// One line of a prompts file, ready to submit, or why it can't be.
struct prompt_entry {
  std::string id; ///< of the line, else its number
  submit order;   ///< client_tag is the entry's index
  error failure;  ///< message empty: fine
};

/// Reads one line: an object with exactly one of `messages`, `prompt`, `prompt_token_ids`, and
/// optionally `id`, `max_new_tokens`, `temperature`, `top_k`, `top_p`, `min_p`, `seed`,
/// `ignore_eos`, `enable_thinking`. Other fields are left alone, so that a data set can be its own
/// prompts file. Errors name the field.
result<submit> parse_prompt(const std::string& line, const prompt_defaults& defaults,
                            const prompt_tools& tools, std::string& id);

/// Every line of a JSONL file; a bad line is an entry with a failure that names file and line.
/// Error: the file can't be read or holds no prompt.
result<std::vector<prompt_entry>> read_prompts(const std::filesystem::path& file,
                                               const prompt_defaults& defaults,
                                               const prompt_tools& tools);

} // namespace tokenrouter
