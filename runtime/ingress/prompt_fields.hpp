#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "runtime/ingress/call_parser.hpp"
#include "runtime/ingress/field_reader.hpp"

namespace tokenrouter {

/// A text, cut into tokens; `field` is where it came from.
void add_text_prompt(field_reader& in, const std::string& field, const std::string& text,
                     const call_tools& tools, generation_call& out);

/// A prompt as text, token ids, or a list of either; `field` names it.
void read_prompts(field_reader& in, const char* field, const nlohmann::json& value,
                  const call_tools& tools, generation_call& out);

} // namespace tokenrouter
