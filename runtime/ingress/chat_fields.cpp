#include "runtime/ingress/chat_fields.hpp"

#include <nlohmann/json.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/ingress/prompt_fields.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::json;
using ordered_json = nlohmann::ordered_json;

std::string item_name(const std::string& list, std::size_t i) {
  return list + "[" + std::to_string(i) + "]";
}

/// Ends the reading of an object within: what is wrong there is wrong with the whole.
bool close(field_reader& in, field_reader& inner) {
  inner.refuse_others();
  if (inner.first_fault())
    in.fault(*inner.first_fault());
  return !inner.first_fault();
}

/// A string, or a list of parts of type text.
void check_content(field_reader& in, const json& content, const std::string& where) {
  if (content.is_string())
    return;
  if (!content.is_array())
    return in.fault(where, "must be text or a list of parts");
  for (std::size_t i = 0; i < content.size(); ++i) {
    const json& x = content[i];
    if (!x.is_object() || !x.contains("type") || x["type"] != "text" || x.size() != 2 ||
        !x.contains("text") || !x["text"].is_string())
      return in.fault(item_name(where, i),
                      "must be {\"type\": \"text\", \"text\": ...}: only text is supported");
  }
}

void check_function(field_reader& in, field_reader& call) {
  const json* function = call.take("function");
  if (function == nullptr || !function->is_object())
    return call.fault(call.name_of("function"), "must be an object with name and arguments");
  field_reader inner(*function, call.name_of("function."));
  if (!inner.text("name"))
    inner.fault(inner.name_of("name"), "must be text");
  const auto arguments = inner.text("arguments");
  const auto object = parse_object(arguments.value_or(""));
  if (!object || !parse_ordered(*object, *arguments))
    inner.fault(inner.name_of("arguments"), "must be a JSON object, as text");
  close(in, inner);
}

void check_calls(field_reader& in, const json& calls, const std::string& where) {
  if (!calls.is_array())
    return in.fault(where, "must be a list of calls");
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].is_object())
      return in.fault(item_name(where, i), "must be an object");
    field_reader call(calls[i], item_name(where, i) + ".");
    call.text("id");
    call.whole("index", 0, INT64_MAX); // left by clients that put a stream together
    call.accept_only("type", "function");
    check_function(in, call);
    if (!close(in, call))
      return;
  }
}

/// Whether the message is about tools.
bool check_message(field_reader& in, const json& x, const std::string& where) {
  if (!x.is_object()) {
    in.fault(where, "must be an object with role and content");
    return false;
  }
  field_reader one(x, where + ".");
  const auto role = one.text("role");
  if (!role)
    one.fault(one.name_of("role"), "must be text");
  one.accept_only("type", "text"); // some clients give messages one, as parts of a content have
  const json* calls = role == "assistant" ? one.take("tool_calls") : nullptr;
  const bool has_calls = calls != nullptr && !calls->empty();
  if (calls != nullptr)
    check_calls(one, *calls, one.name_of("tool_calls"));
  if (role == "tool") {
    one.text("tool_call_id");
    one.text("name");
  }
  const json* content = one.take("content");
  if (content != nullptr)
    check_content(one, *content, one.name_of("content"));
  else if (!has_calls)
    one.fault(one.name_of("content"), "is missing");
  close(in, one);
  return has_calls || role == "tool";
}

void check_tool(field_reader& in, const json& x, const std::string& where) {
  if (!x.is_object() || !x.contains("type") || x["type"] != "function" || !x.contains("function") ||
      !x["function"].is_object())
    return in.fault(where, "must be {\"type\": \"function\", \"function\": {...}}");
  field_reader function(x["function"], where + ".function.");
  if (function.text("name").value_or("").empty())
    function.fault(function.name_of("name"), "must be text, not empty");
  function.text("description");
  // Nothing holds a model to the schema: it is only shown.
  function.accept_only("strict", false);
  if (const json* parameters = function.take("parameters");
      parameters != nullptr && !parameters->is_object())
    function.fault(function.name_of("parameters"), "must be a JSON schema");
  if (function.first_fault())
    in.fault(*function.first_fault());
}

/// Whether there are tools that the model may see and call.
bool read_tools(field_reader& in, tool_call_form form, generation_call& out) {
  const json* list = in.take("tools");
  const json* choice = in.take("tool_choice");
  in.accept_only("parallel_tool_calls", true);
  if (list != nullptr && (!list->is_array() || list->size() > limits::tools_max)) {
    in.fault("tools", "must be a list of at most " + std::to_string(limits::tools_max) + " tools");
    return false;
  }
  const bool any = list != nullptr && !list->empty();
  if (choice != nullptr && *choice != "none" && *choice != "auto")
    in.fault({400,
              "'tool_choice' must be \"auto\" or \"none\": a model can't be made to call a tool",
              "tool_choice", "unsupported_parameter", 0});
  else if (choice != nullptr && *choice == "auto" && !any)
    in.fault("tool_choice", "\"auto\" may only be given with 'tools'");
  for (std::size_t i = 0; any && i < list->size(); ++i)
    check_tool(in, (*list)[i], item_name("tools", i));
  if (!any || in.first_fault() || (choice != nullptr && *choice == "none"))
    return false;
  if (form == tool_call_form::none || form == tool_call_form::unknown) {
    in.fault({400,
              form == tool_call_form::none
                  ? "'tools' can't be used: the model's chat template does not show them"
                  : "'tools' can't be used: how the model writes calls is not known here",
              "tools", "unsupported_parameter", 0});
    return false;
  }
  out.calls = form;
  for (const json& one : *list)
    out.tool_names.push_back(one["function"]["name"].get<std::string>());
  return true;
}

bool read_thinking(field_reader& in) {
  const json* options = in.take("chat_template_kwargs");
  if (options == nullptr)
    return true;
  if (!options->is_object()) {
    in.fault("chat_template_kwargs", "must be an object");
    return true;
  }
  field_reader inner(*options, "chat_template_kwargs.");
  const bool thinking = inner.flag("enable_thinking").value_or(true);
  close(in, inner);
  return thinking;
}

/// A message that was checked, as templates expect it.
ordered_json shown_message(ordered_json x) {
  if (x.contains("content") && x["content"].is_array()) {
    std::string text;
    for (const auto& part : x["content"])
      text += part["text"].get_ref<const std::string&>();
    x["content"] = std::move(text);
  }
  if (!x.contains("tool_calls"))
    return x;
  if (x["tool_calls"].empty()) { // null too
    x.erase("tool_calls");
    return x;
  }
  for (auto& call : x["tool_calls"]) {
    auto& arguments = call["function"]["arguments"];
    arguments = ordered_json::parse(arguments.get_ref<const std::string&>());
  }
  return x;
}

} // namespace

void read_chat(field_reader& in, const ordered_json& body, const call_tools& tools,
               generation_call& out) {
  out.prompt_param = "messages";
  const json* list = in.take("messages");
  const auto form = tools.form ? tools.form->tool_calls() : tool_call_form::none;
  const bool shows_tools = read_tools(in, form, out);
  const bool thinking = read_thinking(in);
  if (list == nullptr || !list->is_array() || list->empty())
    return in.fault("messages", "must be a list of at least one message");
  bool about_tools = false;
  for (std::size_t i = 0; i < list->size() && !in.first_fault(); ++i)
    about_tools = check_message(in, (*list)[i], item_name("messages", i)) || about_tools;
  if (!tools.form)
    in.fault("messages", "can't be written: " + tools.form.error().message);
  else if (about_tools && form == tool_call_form::none)
    in.fault({400, "'messages' speak of tools, which the model's chat template does not show",
              "messages", "unsupported_parameter", 0});
  if (in.first_fault())
    return;
  ordered_json messages = ordered_json::array();
  for (const auto& one : body["messages"])
    messages.push_back(shown_message(one));
  ordered_json more = ordered_json::object();
  if (!thinking)
    more["enable_thinking"] = false;
  const auto text =
      tools.form->render_json(messages, shows_tools ? body["tools"] : ordered_json(), more, true);
  if (!text)
    return in.fault("messages", "can't be written by the chat template: " + text.error().message);
  add_text_prompt(in, "messages", *text, tools, out);
}

} // namespace tokenrouter
