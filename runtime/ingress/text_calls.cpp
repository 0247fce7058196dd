#include "runtime/ingress/text_calls.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/ingress/answer_json.hpp"
#include "runtime/ingress/chat_fields.hpp"
#include "runtime/ingress/field_reader.hpp"
#include "runtime/ingress/prompt_fields.hpp"

namespace tokenrouter {

namespace {

void take_model(field_reader& in, const call_tools& tools) {
  const auto name = in.text("model");
  if (name && *name != tools.model_name &&
      std::ranges::find(tools.single_models, *name) == tools.single_models.end())
    in.fault({404, "there is no model '" + *name + "' here; see /v1/models", "model",
              "model_not_found", 0});
}

} // namespace

api_result<std::string> tokenize_answer(const std::string& body, const call_tools& tools,
                                        std::uint32_t context_tokens_max) {
  const auto object = parse_object(body);
  if (!object)
    return tl::unexpected(object.error());
  const auto ordered = parse_ordered(*object, body);
  if (!ordered)
    return tl::unexpected(ordered.error());
  field_reader in(*object);
  take_model(in, tools);
  in.accept_only("add_generation_prompt", true);
  in.accept_only("return_token_strs", false);
  generation_call call;
  const auto* prompt = in.take("prompt");
  if (prompt != nullptr && prompt->is_string() && prompt->get_ref<const std::string&>().empty())
    call.prompts.emplace_back();
  else if (prompt != nullptr && !prompt->is_string())
    in.fault("prompt", "must be text");
  else if (prompt != nullptr)
    read_prompts(in, "prompt", *prompt, tools, call);
  else
    read_chat(in, *ordered, tools, call);
  // A tokenizer here puts no token before or after a text.
  in.flag("add_special_tokens");
  in.refuse_others();
  if (in.first_fault())
    return tl::unexpected(*in.first_fault());
  answer_json out;
  out["count"] = call.prompts.front().size();
  out["max_model_len"] = context_tokens_max;
  out["tokens"] = call.prompts.front();
  return dump(out);
}

api_result<std::string> detokenize_answer(const std::string& body, const call_tools& tools) {
  const auto object = parse_object(body);
  if (!object)
    return tl::unexpected(object.error());
  field_reader in(*object);
  take_model(in, tools);
  generation_call call;
  const auto* tokens = in.take("tokens");
  if (tokens == nullptr || !tokens->is_array())
    in.fault("tokens", "must be a list of token ids");
  else if (tokens->empty())
    call.prompts.emplace_back();
  else if (!tokens->front().is_number())
    in.fault("tokens", "must be a list of token ids");
  else
    read_prompts(in, "tokens", *tokens, tools, call);
  in.refuse_others();
  if (in.first_fault())
    return tl::unexpected(*in.first_fault());
  answer_json out;
  out["prompt"] = tools.words->decode(call.prompts.front());
  return dump(out);
}

} // namespace tokenrouter
