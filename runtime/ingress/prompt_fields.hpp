#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/ingress/call_parser.hpp"
#include "runtime/ingress/field_reader.hpp"

namespace tokenrouter {

/// `messages` of a chat, written by the template and cut into tokens.
void read_messages(field_reader& in, const call_tools& tools, bool enable_thinking,
                   generation_call& out);

/// A prompt as text, token ids, or a list of either; `field` names it.
void read_prompts(field_reader& in, const char* field, const nlohmann::json& value,
                  const call_tools& tools, generation_call& out);

} // namespace tokenrouter
