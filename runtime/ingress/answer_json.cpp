#include "runtime/ingress/answer_json.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/text/utf8.hpp"

namespace tokenrouter {

std::string dump(const answer_json& x) {
  return x.dump(-1, ' ', false, answer_json::error_handler_t::replace);
}

std::string token_text(const tokenizer& words, token_id token) {
  const auto bytes = words.token_bytes(token);
  if (utf8::is_valid(bytes))
    return std::string(bytes);
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "bytes:";
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    text += {'\\', 'x', digits[value >> 4], digits[value & 15]};
  }
  return text;
}

double finite_logprob(float x) {
  return std::isfinite(x) ? double{x} : -9999.0;
}

std::string finish_text(finish_reason finish) {
  return finish == finish_reason::stop     ? "stop"
         : finish == finish_reason::length ? "length"
                                           : "error";
}

std::uint64_t cached_tokens(const choice_output& choice) {
  std::uint64_t most = 0;
  if (choice.end)
    for (const auto& work : choice.end->work)
      most = std::max(most, work.cached_tokens);
  return std::min<std::uint64_t>(most, choice.prompt.size());
}

namespace {

answer_json usage_of(std::uint64_t prompt, std::uint64_t completion, std::uint64_t cached) {
  answer_json usage;
  usage["prompt_tokens"] = prompt;
  usage["completion_tokens"] = completion;
  usage["total_tokens"] = prompt + completion;
  usage["prompt_tokens_details"] = {{"cached_tokens", cached}};
  return usage;
}

} // namespace

answer_json usage_json(const choice_output& choice) {
  return usage_of(choice.prompt.size(), choice.all.tokens.size(), cached_tokens(choice));
}

answer_json usage_json(const generation_call& call, const std::vector<choice_output>& choices) {
  std::uint64_t prompt = 0, completion = 0, cached = 0;
  for (const auto& x : choices) {
    if (x.index % call.choices_per_prompt == 0) {
      prompt += x.prompt.size();
      cached += cached_tokens(x);
    }
    completion += x.all.tokens.size();
  }
  return usage_of(prompt, completion, cached);
}

answer_json routing_json(const answer_facts& facts, std::span<const generated_token> tokens) {
  answer_json models = answer_json::array(), scores = answer_json::array();
  for (const auto& x : tokens) {
    models.push_back(facts.model_names.at(x.model.value));
    scores.push_back(std::isnan(x.score) ? answer_json(nullptr) : answer_json(x.score));
  }
  answer_json out;
  out["models"] = std::move(models);
  out["scores"] = std::move(scores);
  return out;
}

answer_json token_ids_json(std::span<const generated_token> tokens) {
  answer_json ids = answer_json::array();
  for (const auto& x : tokens)
    ids.push_back(x.token);
  return ids;
}

} // namespace tokenrouter
