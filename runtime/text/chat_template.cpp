#include "runtime/text/chat_template.hpp"

#include <fstream>
#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

#include "runtime/text/jinja/program.hpp"
#include "runtime/text/special_tokens.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::ordered_json;

/// Sources of a model's templates and where they were found.
struct template_sources {
  std::string where;
  std::string plain;
  std::string tool_where;
  std::optional<std::string> with_tools;
};

std::optional<std::string> read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(stream), {}};
}

/// From `chat_template` of a tokenizer_config.json.
result<template_sources> sources_in(const json& source, const std::string& where) {
  template_sources out{where, {}, where, {}};
  if (source.is_string()) {
    out.plain = source.get<std::string>();
    return out;
  }
  std::optional<std::string> plain;
  const json none = json::array();
  for (const json& one : source.is_array() ? source : none) {
    if (!one.is_object() || !one.contains("name") || !one.contains("template") ||
        !one["template"].is_string())
      return fail(errc::malformed, where + ": chat_template holds an entry without a name and a "
                                           "template");
    if (one["name"] == "default")
      plain = one["template"].get<std::string>();
    else if (one["name"] == "tool_use")
      out.with_tools = one["template"].get<std::string>();
  }
  if (!plain)
    return fail(errc::malformed,
                where + ": chat_template must be a text or a list with one named 'default'");
  out.plain = std::move(*plain);
  return out;
}

result<template_sources> find_sources(const std::filesystem::path& folder) {
  const auto file = folder / "chat_template.jinja";
  if (auto plain = read_text(file)) {
    const auto tool_file = folder / "additional_chat_templates" / "tool_use.jinja";
    return template_sources{file.string(), std::move(*plain), tool_file.string(),
                            read_text(tool_file)};
  }
  const auto config = folder / "tokenizer_config.json";
  const auto root = read_json_object(config);
  if (!root)
    return tl::unexpected(root.error());
  const auto source = root->find("chat_template");
  if (source == root->end() || source->is_null())
    return fail(errc::not_found, folder.string() +
                                     ": has no chat template (neither chat_template.jinja nor "
                                     "chat_template in tokenizer_config.json); send prompts as "
                                     "text");
  return sources_in(*source, config.string());
}

/// Messages as transformers hands them to a template.
result<json> normalised(const json& messages) {
  const bool is_list = messages.is_array() && !messages.empty();
  if (!is_list)
    return fail(errc::invalid_argument, "messages must be a list of at least one message");
  json out = json::array();
  for (const json& message : messages) {
    if (!message.is_object())
      return fail(errc::invalid_argument, "messages must be objects");
    json reasoning;
    for (const char* name : {"reasoning_content", "thinking", "reasoning"})
      if (reasoning.is_null() && message.contains(name))
        reasoning = message[name];
    json one = json::object();
    if (!reasoning.is_null())
      one["thinking"] = reasoning;
    for (const auto& [name, v] : message.items())
      if (!v.is_null())
        one[name] = v;
    if (!reasoning.is_null())
      one["reasoning_content"] = reasoning;
    out.push_back(std::move(one));
  }
  return out;
}

/// `takes_tools`: the template reads the variable.
tool_call_form form_of(std::string_view source, bool takes_tools) {
  const auto has = [source](std::string_view mark) { return source.find(mark) != source.npos; };
  // A key of JSON within a text of the template, whichever quotes that has.
  const auto has_key = [&](const std::string& key) {
    return has('"' + key + '"') || has("\\\"" + key + "\\\"");
  };
  if (!takes_tools)
    return tool_call_form::none;
  if (has("<tool_call>") && has_key("arguments") && !has("<function="))
    return tool_call_form::tagged;
  if (has("<|start_header_id|>") && has_key("parameters"))
    return tool_call_form::bare_json;
  return tool_call_form::unknown;
}

std::tm local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
  localtime_r(&now, &out);
  return out;
}

} // namespace

struct chat_template::parts {
  jinja::program plain;
  std::optional<jinja::program> with_tools;
  json special_tokens = json::object();
  tool_call_form calls = tool_call_form::none;
};

result<chat_template> chat_template::parse(std::string_view source, const std::string& where) {
  auto plain = jinja::program::parse(source, where);
  if (!plain)
    return tl::unexpected(plain.error());
  const auto calls = form_of(source, plain->mentions("tools"));
  return chat_template(
      std::make_shared<const parts>(parts{std::move(*plain), std::nullopt, json::object(), calls}));
}

result<chat_template> chat_template::load(const std::filesystem::path& model_folder) {
  const auto sources = find_sources(model_folder);
  if (!sources)
    return tl::unexpected(sources.error());
  auto plain = jinja::program::parse(sources->plain, sources->where);
  if (!plain)
    return tl::unexpected(plain.error());
  auto tokens = read_special_tokens(model_folder);
  if (!tokens)
    return tl::unexpected(tokens.error());
  const auto calls = form_of(sources->plain, plain->mentions("tools"));
  parts made{std::move(*plain), std::nullopt, std::move(*tokens), calls};
  if (sources->with_tools) {
    auto with_tools = jinja::program::parse(*sources->with_tools, sources->tool_where);
    if (!with_tools)
      return tl::unexpected(with_tools.error());
    made.with_tools = std::move(*with_tools);
    made.calls = form_of(*sources->with_tools, true);
  }
  return chat_template(std::make_shared<const parts>(std::move(made)));
}

result<std::string> chat_template::render(const std::vector<chat_message>& messages,
                                          const chat_options& options) const {
  json list = json::array();
  for (const chat_message& message : messages)
    list.push_back(json{{"role", message.role}, {"content", message.content}});
  json more = json::object();
  if (!options.enable_thinking)
    more["enable_thinking"] = false;
  return render_json(list, nullptr, more, options.add_generation_prompt);
}

result<std::string> chat_template::render_json(const json& messages, const json& tools,
                                               const json& more, bool add_generation_prompt,
                                               const std::tm* now) const {
  auto list = normalised(messages);
  if (!list)
    return tl::unexpected(list.error());
  if (!tools.is_null() && !tools.is_array())
    return fail(errc::invalid_argument, "tools must be a list");
  if (!more.is_null() && !more.is_object())
    return fail(errc::invalid_argument, "the template's further variables must be an object");
  json given = parts_->special_tokens;
  given["documents"] = nullptr;
  for (const auto& [name, v] : more.items())
    given[name] = v;
  for (const char* name : {"messages", "tools", "add_generation_prompt"})
    if (more.contains(name))
      return fail(errc::invalid_argument,
                  "'" + std::string(name) + "' can't be one of the template's further variables");
  given["messages"] = std::move(*list);
  given["tools"] = tools;
  given["add_generation_prompt"] = add_generation_prompt;
  const bool tool_use = parts_->with_tools && tools.is_array() && !tools.empty();
  return (tool_use ? *parts_->with_tools : parts_->plain).render(given, now ? *now : local_now());
}

tool_call_form chat_template::tool_calls() const {
  return parts_->calls;
}

bool chat_template::has_thinking() const {
  return parts_->plain.mentions("enable_thinking");
}

std::string chat_template::bos_token() const {
  const auto found = parts_->special_tokens.find("bos_token");
  return found == parts_->special_tokens.end() ? std::string() : found->get<std::string>();
}

} // namespace tokenrouter
