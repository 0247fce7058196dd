#include "runtime/ingress/call_parser.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/ingress/chat_fields.hpp"
#include "runtime/ingress/field_reader.hpp"
#include "runtime/ingress/prompt_fields.hpp"
#include "runtime/ingress/sampling_fields.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::json;

constexpr std::uint32_t completion_tokens_default = 16;
constexpr std::uint32_t generate_tokens_default = 128;

/// One model for the whole call, by its name.
void pin_model(field_reader& in, const char* field, const std::string& name,
               const call_tools& tools, generation_call& out) {
  const auto found = std::ranges::find(tools.single_models, name);
  if (found == tools.single_models.end())
    return in.fault({404, "there is no model '" + name + "' here; see /v1/models",
                     in.name_of(field), "model_not_found", 0});
  const model_id model{static_cast<std::uint16_t>(found - tools.single_models.begin())};
  if (out.each.only_model && *out.each.only_model != model)
    return in.fault(in.name_of(field), "and 'model' name different models; give one");
  out.each.only_model = model;
}

void read_model(field_reader& in, const call_tools& tools, generation_call& out) {
  out.model = in.text("model").value_or(tools.model_name);
  if (out.model != tools.model_name)
    pin_model(in, "model", out.model, tools, out);
}

void read_stream(field_reader& in, generation_call& out) {
  out.stream = in.flag("stream").value_or(false);
  const json* options = in.take("stream_options");
  if (options == nullptr)
    return;
  if (!options->is_object())
    return in.fault("stream_options", "must be an object");
  if (!out.stream)
    return in.fault("stream_options", "may only be given with \"stream\": true");
  field_reader inner(*options, "stream_options.");
  out.include_usage = inner.flag("include_usage").value_or(false);
  out.continuous_usage = inner.flag("continuous_usage_stats").value_or(false) && out.include_usage;
  inner.accept_only("include_obfuscation", false);
  inner.refuse_others();
  if (inner.first_fault())
    in.fault(*inner.first_fault());
}

void read_threshold(field_reader& in, const call_tools& tools, generation_call& out) {
  const json* given = in.take("threshold");
  if (given == nullptr)
    return;
  if (tools.threshold_max == 0)
    return in.fault({400,
                     "'" + in.name_of("threshold") +
                         "' has no effect: this job's routing "
                         "method has no threshold that a request may set",
                     in.name_of("threshold"), "unsupported_parameter", 0});
  if (out.each.only_model)
    return in.fault(in.name_of("threshold"), "has no effect where one model writes all");
  out.each.threshold = in.number("threshold", 0, tools.threshold_max);
}

/// `routing`: true, or an object with `report`, `request_score`, `model` and `threshold`.
void read_routing(field_reader& in, const call_tools& tools, generation_call& out) {
  const json* routing = in.take("routing");
  if (routing == nullptr)
    return;
  if (routing->is_boolean()) {
    out.report_routing = routing->get<bool>();
    return;
  }
  if (!routing->is_object())
    return in.fault("routing", "must be true, false or an object");
  field_reader inner(*routing, "routing.");
  out.report_routing = inner.flag("report").value_or(true);
  if (const auto score = inner.number("request_score", 0, 1))
    out.each.request_score = static_cast<float>(*score);
  if (const auto name = inner.text("model"))
    pin_model(inner, "model", *name, tools, out);
  read_threshold(inner, tools, out);
  inner.refuse_others();
  if (inner.first_fault())
    in.fault(*inner.first_fault());
}

/// What both OpenAI forms have in common.
void read_openai(field_reader& in, const call_tools& tools, generation_call& out) {
  read_model(in, tools, out);
  read_stream(in, out);
  read_sampling(in, tools, out.each);
  read_seed(in, "seed", out.each);
  accept_neutral_sampling(in);
  out.choices_per_prompt =
      static_cast<std::uint32_t>(in.whole("n", 1, limits::choices_max).value_or(1));
  if (const auto most = in.whole("max_tokens", 0, UINT32_MAX))
    out.max_new_tokens = static_cast<std::uint32_t>(*most);
  out.return_token_ids = in.flag("return_token_ids").value_or(false);
  read_routing(in, tools, out);
  in.text("user"); // whose call it is changes nothing
}

api_result<generation_call> finish(field_reader& in, generation_call& out) {
  in.refuse_others();
  if (in.first_fault())
    return tl::unexpected(*in.first_fault());
  if (out.prompts.size() * out.choices_per_prompt > limits::choices_max)
    return bad_field("n", "times the prompts is more than " + std::to_string(limits::choices_max));
  if (out.max_new_tokens == 0u && !out.echo)
    return bad_field("max_tokens", "is 0: ask for at least one token");
  return std::move(out);
}

} // namespace

api_result<generation_call> parse_chat(const std::string& body, const call_tools& tools) {
  const auto object = parse_object(body);
  if (!object)
    return tl::unexpected(object.error());
  const auto ordered = parse_ordered(*object, body);
  if (!ordered)
    return tl::unexpected(ordered.error());
  generation_call out;
  out.form = api_form::chat;
  field_reader in(*object);
  read_openai(in, tools, out);
  if (const auto most = in.whole("max_completion_tokens", 1, UINT32_MAX)) {
    if (out.max_new_tokens && *out.max_new_tokens != *most)
      in.fault("max_completion_tokens", "and 'max_tokens' differ; give one");
    out.max_new_tokens = static_cast<std::uint32_t>(*most);
  }
  out.logprobs = in.flag("logprobs").value_or(false);
  if (const auto top = in.whole("top_logprobs", 0, limits::top_logprobs_max)) {
    out.top_logprobs = static_cast<std::uint32_t>(*top);
    if (!out.logprobs && *top > 0)
      in.fault("top_logprobs", "may only be given with \"logprobs\": true");
  }
  in.accept_only("response_format", {{"type", "text"}});
  in.accept_only("store", false);
  in.accept_only("add_generation_prompt", true);
  read_chat(in, *ordered, tools, out);
  return finish(in, out);
}

api_result<generation_call> parse_completion(const std::string& body, const call_tools& tools) {
  const auto object = parse_object(body);
  if (!object)
    return tl::unexpected(object.error());
  generation_call out;
  out.form = api_form::completion;
  out.max_new_tokens = completion_tokens_default;
  field_reader in(*object);
  read_openai(in, tools, out);
  out.echo = in.flag("echo").value_or(false);
  if (const auto top = in.whole("logprobs", 0, limits::top_logprobs_max)) {
    out.logprobs = true;
    out.top_logprobs = static_cast<std::uint32_t>(*top);
  }
  in.accept_only("best_of", out.choices_per_prompt);
  in.accept_only("suffix", "");
  const json* prompt = in.take("prompt");
  if (prompt == nullptr)
    in.fault("prompt", "is missing");
  else if (!in.first_fault())
    read_prompts(in, "prompt", *prompt, tools, out);
  return finish(in, out);
}

namespace {

void read_generate_sampling(field_reader& in, const call_tools& tools, generation_call& out) {
  const json* given = in.take("sampling_params");
  const json none = json::object();
  if (given != nullptr && !given->is_object())
    return in.fault("sampling_params", "must be an object (one for all prompts)");
  field_reader inner(given != nullptr ? *given : none, "sampling_params.");
  read_sampling(inner, tools, out.each);
  read_seed(inner, "sampling_seed", out.each);
  accept_neutral_sampling(inner);
  inner.accept_only("min_new_tokens", 0);
  inner.accept_only("no_stop_trim", false);
  if (const auto most = inner.whole("max_new_tokens", 1, UINT32_MAX))
    out.max_new_tokens = static_cast<std::uint32_t>(*most);
  out.choices_per_prompt =
      static_cast<std::uint32_t>(inner.whole("n", 1, limits::choices_max).value_or(1));
  inner.refuse_others();
  if (inner.first_fault())
    in.fault(*inner.first_fault());
}

} // namespace

api_result<generation_call> parse_generate(const std::string& body, const call_tools& tools) {
  const auto object = parse_object(body);
  if (!object)
    return tl::unexpected(object.error());
  generation_call out;
  out.form = api_form::generate;
  out.model = tools.model_name;
  out.max_new_tokens = generate_tokens_default;
  field_reader in(*object);
  read_generate_sampling(in, tools, out);
  out.stream = in.flag("stream").value_or(false);
  out.logprobs = in.flag("return_logprob").value_or(false);
  if (const auto top = in.whole("top_logprobs_num", 0, limits::top_logprobs_max))
    out.top_logprobs = static_cast<std::uint32_t>(*top);
  in.accept_only("return_text_in_logprobs", true);
  read_routing(in, tools, out);
  const json *text = in.take("text"), *ids = in.take("input_ids");
  if ((text == nullptr) == (ids == nullptr))
    in.fault("text", "or 'input_ids' must be given, and only one of them");
  else if (!in.first_fault())
    read_prompts(in, text != nullptr ? "text" : "input_ids", text != nullptr ? *text : *ids, tools,
                 out);
  return finish(in, out);
}

} // namespace tokenrouter
