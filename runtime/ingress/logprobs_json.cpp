#include "runtime/ingress/logprobs_json.hpp"

#include <algorithm>
#include <cmath>

namespace tokenrouter {

namespace {

answer_json bytes_json(std::string_view bytes) {
  answer_json list = answer_json::array();
  for (const char c : bytes)
    list.push_back(static_cast<unsigned char>(c));
  return list;
}

answer_json scored(const tokenizer& words, token_id token, float logprob) {
  answer_json out;
  out["token"] = token_text(words, token);
  out["logprob"] = finite_logprob(logprob);
  out["bytes"] = bytes_json(words.token_bytes(token));
  return out;
}

std::uint64_t characters(std::string_view text) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

} // namespace

answer_json chat_logprobs(const tokenizer& words, std::span<const generated_token> tokens) {
  answer_json content = answer_json::array();
  for (const auto& x : tokens) {
    answer_json one = scored(words, x.token, x.logprob);
    answer_json top = answer_json::array();
    for (const auto& y : x.top)
      top.push_back(scored(words, y.token, y.logprob));
    one["top_logprobs"] = std::move(top);
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}};
}

answer_json completion_logprobs(const tokenizer& words, std::span<const generated_token> tokens,
                                std::uint32_t top_logprobs, std::uint64_t& text_offset) {
  answer_json names = answer_json::array(), values = answer_json::array(),
              tops = answer_json::array(), offsets = answer_json::array();
  for (const auto& x : tokens) {
    const bool known = !std::isnan(x.logprob);
    names.push_back(token_text(words, x.token));
    values.push_back(known ? answer_json(finite_logprob(x.logprob)) : answer_json(nullptr));
    answer_json top = nullptr;
    if (top_logprobs > 0 && known) {
      top = answer_json::object();
      for (const auto& y : x.top)
        top.emplace(token_text(words, y.token), finite_logprob(y.logprob));
      top.emplace(token_text(words, x.token), finite_logprob(x.logprob));
    }
    tops.push_back(std::move(top));
    offsets.push_back(text_offset);
    text_offset += characters(words.token_bytes(x.token));
  }
  answer_json out;
  out["tokens"] = std::move(names);
  out["token_logprobs"] = std::move(values);
  out["top_logprobs"] = top_logprobs > 0 ? std::move(tops) : answer_json(nullptr);
  out["text_offset"] = std::move(offsets);
  return out;
}

} // namespace tokenrouter
