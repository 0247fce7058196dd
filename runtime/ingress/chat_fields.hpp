#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/ingress/call_parser.hpp"
#include "runtime/ingress/field_reader.hpp"

namespace tokenrouter {

/// `messages`, `tools`, `tool_choice` and `chat_template_kwargs` of a chat, written by the template
/// and cut into tokens. The template sees messages and tools as they stand in `body`, what `in`
/// reads with its members in order; but arguments of calls become objects, and parts of a content
/// one text.
void read_chat(field_reader& in, const nlohmann::ordered_json& body, const call_tools& tools,
               generation_call& out);

} // namespace tokenrouter
