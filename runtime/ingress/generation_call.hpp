#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ingress/engine.hpp"
#include "runtime/text/chat_template.hpp"

namespace tokenrouter {

enum class api_form : std::uint8_t { chat, completion, generate };

/// A client's call for text, whatever API it came by.
struct generation_call {
  api_form form = api_form::completion;
  std::string model; ///< as the client calls it
  std::vector<std::vector<token_id>> prompts;
  bool is_batch = false;                       ///< the prompts came as a list
  std::string prompt_param = "prompt";         ///< the field they came in
  std::optional<std::uint32_t> max_new_tokens; ///< none: as many as fit
  std::uint32_t choices_per_prompt = 1;
  generation_order each; ///< of every choice, but for prompt, max_new_tokens and seed
  bool stream = false;
  bool include_usage = false;    ///< of a stream: with its end
  bool continuous_usage = false; ///< … and its choice's so far with every event
  bool echo = false;
  bool logprobs = false;
  std::uint32_t top_logprobs = 0;
  bool return_token_ids = false;
  bool report_routing = false;                 ///< model and score of each token go into the answer
  tool_call_form calls = tool_call_form::none; ///< that the answer may hold
  std::vector<std::string> tool_names;         ///< of the tools that the model was shown
};

} // namespace tokenrouter
