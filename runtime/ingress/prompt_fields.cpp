#include "runtime/ingress/prompt_fields.hpp"

#include <limits>

#include <nlohmann/json.hpp>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::json;

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

void add_text_prompt(field_reader& in, const std::string& field, const std::string& text,
                     const call_tools& tools, generation_call& out) {
  auto tokens = tools.words->encode(text);
  if (!tokens)
    return in.fault(field, "can't be cut into tokens: " + tokens.error().message);
  if (tokens->empty())
    return in.fault(field, "is empty: give at least one token");
  out.prompts.push_back(std::move(*tokens));
}

void read_prompts(field_reader& in, const char* field, const json& value, const call_tools& tools,
                  generation_call& out) {
  out.prompt_param = in.name_of(field);
  if (value.is_string())
    return add_text_prompt(in, out.prompt_param, value.get<std::string>(), tools, out);
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
      add_text_prompt(in, where, value[i].get<std::string>(), tools, out);
    else if (value[i].is_array())
      add_ids(in, where, value[i], out);
    else
      in.fault(where, "must be text or token ids");
  }
}

} // namespace tokenrouter
