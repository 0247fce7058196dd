#include "runtime/ingress/prompt_fields.hpp"

#include <limits>

#include <nlohmann/json.hpp>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::json;

/// Text of a message: a string, or a list of parts of type text.
std::optional<std::string> content_of(field_reader& in, const json& content,
                                      const std::string& where) {
  if (content.is_string())
    return content.get<std::string>();
  if (!content.is_array()) {
    in.fault(where, "must be text or a list of parts");
    return std::nullopt;
  }
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string part = where + "[" + std::to_string(i) + "]";
    const json& x = content[i];
    if (!x.is_object() || !x.contains("type") || x["type"] != "text" || x.size() != 2 ||
        !x.contains("text") || !x["text"].is_string()) {
      in.fault(part, "must be {\"type\": \"text\", \"text\": ...}: only text is supported");
      return std::nullopt;
    }
    text += x["text"].get<std::string>();
  }
  return text;
}

std::optional<chat_message> message_of(field_reader& in, const json& x, const std::string& where) {
  if (!x.is_object()) {
    in.fault(where, "must be an object with role and content");
    return std::nullopt;
  }
  for (const auto& [name, value] : x.items())
    if (name != "role" && name != "content" && !value.is_null()) {
      in.fault({400, "'" + where + "." + name + "' is not supported", where + "." + name,
                "unsupported_parameter", 0});
      return std::nullopt;
    }
  if (!x.contains("role") || !x["role"].is_string()) {
    in.fault(where + ".role", "must be text");
    return std::nullopt;
  }
  if (!x.contains("content")) {
    in.fault(where + ".content", "is missing");
    return std::nullopt;
  }
  auto content = content_of(in, x["content"], where + ".content");
  if (!content)
    return std::nullopt;
  return chat_message{x["role"].get<std::string>(), std::move(*content)};
}

void add_text(field_reader& in, const std::string& field, const std::string& text,
              const call_tools& tools, generation_call& out) {
  auto tokens = tools.words->encode(text);
  if (!tokens)
    return in.fault(field, "can't be cut into tokens: " + tokens.error().message);
  if (tokens->empty())
    return in.fault(field, "is empty: give at least one token");
  out.prompts.push_back(std::move(*tokens));
}

void add_ids(field_reader& in, const std::string& field, const json& list, generation_call& out) {
  std::vector<token_id> tokens;
  for (const auto& one : list) {
    if (!one.is_number_integer() || one.get<std::int64_t>() < 0 ||
        one.get<std::int64_t>() > std::numeric_limits<token_id>::max())
      return in.fault(field, "holds something else than token ids");
    tokens.push_back(one.get<token_id>());
  }
  if (tokens.empty())
    return in.fault(field, "is empty: give at least one token");
  out.prompts.push_back(std::move(tokens));
}

} // namespace

void read_messages(field_reader& in, const call_tools& tools, bool enable_thinking,
                   generation_call& out) {
  out.prompt_param = "messages";
  const json* list = in.take("messages");
  if (list == nullptr || !list->is_array() || list->empty())
    return in.fault("messages", "must be a list of at least one message");
  std::vector<chat_message> messages;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto one = message_of(in, (*list)[i], "messages[" + std::to_string(i) + "]");
    if (!one)
      return;
    messages.push_back(std::move(*one));
  }
  const auto text = tools.render(messages, {true, enable_thinking});
  if (!text)
    return in.fault("messages", "can't be written by the chat template: " + text.error().message);
  add_text(in, "messages", *text, tools, out);
}

void read_prompts(field_reader& in, const char* field, const json& value, const call_tools& tools,
                  generation_call& out) {
  out.prompt_param = in.name_of(field);
  if (value.is_string())
    return add_text(in, out.prompt_param, value.get<std::string>(), tools, out);
  if (!value.is_array() || value.empty())
    return in.fault(out.prompt_param, "must be text, token ids, or a list of either, not empty");
  if (value.front().is_number())
    return add_ids(in, out.prompt_param, value, out);
  if (value.size() > limits::choices_max)
    return in.fault(out.prompt_param,
                    "has more than " + std::to_string(limits::choices_max) + " entries");
  out.is_batch = true;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string where = out.prompt_param + "[" + std::to_string(i) + "]";
    if (value[i].is_string())
      add_text(in, where, value[i].get<std::string>(), tools, out);
    else if (value[i].is_array())
      add_ids(in, where, value[i], out);
    else
      in.fault(where, "must be text or token ids");
  }
}

} // namespace tokenrouter
