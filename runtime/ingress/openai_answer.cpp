#include <string>
#include <utility>

#include "runtime/ingress/answer.hpp"
#include "runtime/ingress/answer_json.hpp"
#include "runtime/ingress/logprobs_json.hpp"

namespace tokenrouter {

namespace {

/// /v1/chat/completions and /v1/completions.
class openai_answer final : public answer_format {
 public:
  openai_answer(const generation_call& call, answer_facts facts)
      : call_(call), facts_(std::move(facts)), is_chat_(call.form == api_form::chat) {}

  std::string whole(const std::vector<choice_output>& choices) override {
    answer_json out = head(false);
    answer_json list = answer_json::array();
    for (const auto& x : choices)
      list.push_back(whole_choice(x));
    out["choices"] = std::move(list);
    out["usage"] = usage_json(call_, choices);
    if (call_.return_token_ids && is_chat_)
      out["prompt_token_ids"] = choices.front().prompt;
    return dump(out);
  }

  void piece(const choice_output& x, const generation_delta& fresh,
             std::vector<std::string>& events) override {
    open(x, events);
    const bool tells_tokens = call_.logprobs || call_.return_token_ids || call_.report_routing;
    if (fresh.text.empty() && !(tells_tokens && !fresh.tokens.empty()))
      return;
    answer_json choice = part(x, fresh.text);
    add_details(choice, x, fresh.tokens);
    events.push_back(event(std::move(choice)));
  }

  void last(const choice_output& x, std::vector<std::string>& events) override {
    open(x, events);
    answer_json choice = part(x, "");
    if (is_chat_)
      choice["delta"] = answer_json::object();
    choice["finish_reason"] = finish_text(x.end->finish);
    if (call_.report_routing)
      choice["routing"] = {{"handoffs", x.end->handoffs}};
    events.push_back(event(std::move(choice)));
  }

  void closing(const std::vector<choice_output>& choices,
               std::vector<std::string>& events) override {
    if (call_.include_usage) {
      answer_json out = head(true);
      out["choices"] = answer_json::array();
      out["usage"] = usage_json(call_, choices);
      events.push_back(dump(out));
    }
    events.emplace_back("[DONE]");
  }

 private:
  answer_json head(bool chunk) const {
    answer_json out;
    out["id"] = facts_.id;
    out["object"] = !is_chat_ ? "text_completion"
                    : chunk   ? "chat.completion.chunk"
                              : "chat.completion";
    out["created"] = facts_.created_s;
    out["model"] = call_.model;
    return out;
  }

  std::string event(answer_json choice) const {
    answer_json out = head(true);
    out["choices"] = answer_json::array({std::move(choice)});
    if (call_.include_usage)
      out["usage"] = nullptr;
    return dump(out);
  }

  /// A choice of a chunk with that text and nothing else yet.
  answer_json part(const choice_output& x, std::string text) const {
    answer_json choice;
    choice["index"] = x.index;
    if (is_chat_)
      choice["delta"] = {{"content", std::move(text)}};
    else
      choice["text"] = std::move(text);
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = nullptr;
    return choice;
  }

  /// What comes before a choice's first token: the role, or the prompt with `echo`.
  void open(const choice_output& x, std::vector<std::string>& events) {
    if (opened_.size() <= x.index)
      opened_.resize(x.index + std::size_t{1});
    if (std::exchange(opened_[x.index].done, true))
      return;
    if (is_chat_) {
      answer_json choice = part(x, "");
      choice["delta"] = {{"role", "assistant"}, {"content", ""}};
      events.push_back(event(std::move(choice)));
    } else if (call_.echo || call_.return_token_ids) {
      answer_json choice = part(x, call_.echo ? prompt_text(x) : "");
      if (call_.echo && call_.logprobs)
        choice["logprobs"] = prompt_logprobs(x, opened_[x.index].text_offset);
      if (call_.return_token_ids)
        choice["prompt_token_ids"] = x.prompt;
      events.push_back(event(std::move(choice)));
    }
  }

  answer_json whole_choice(const choice_output& x) const {
    answer_json choice;
    choice["index"] = x.index;
    if (is_chat_)
      choice["message"] = {{"role", "assistant"}, {"content", x.all.text}};
    else
      choice["text"] = (call_.echo ? prompt_text(x) : "") + x.all.text;
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = finish_text(x.end->finish);
    if (call_.logprobs && is_chat_) {
      choice["logprobs"] = chat_logprobs(*facts_.words, x.all.tokens);
    } else if (call_.logprobs) {
      std::uint64_t offset = 0;
      answer_json own;
      if (call_.echo)
        own = prompt_logprobs(x, offset);
      append(own, completion_logprobs(*facts_.words, x.all.tokens, call_.top_logprobs, offset));
      choice["logprobs"] = std::move(own);
    }
    if (call_.return_token_ids) {
      choice["token_ids"] = token_ids_json(x.all.tokens);
      if (!is_chat_)
        choice["prompt_token_ids"] = x.prompt;
    }
    if (call_.report_routing) {
      choice["routing"] = routing_json(facts_, x.all.tokens);
      choice["routing"]["handoffs"] = x.end->handoffs;
    }
    return choice;
  }

  void add_details(answer_json& choice, const choice_output& x,
                   const std::vector<generated_token>& tokens) {
    if (call_.logprobs)
      choice["logprobs"] = is_chat_ ? chat_logprobs(*facts_.words, tokens)
                                    : completion_logprobs(*facts_.words, tokens, call_.top_logprobs,
                                                          opened_[x.index].text_offset);
    if (call_.return_token_ids)
      choice["token_ids"] = token_ids_json(tokens);
    if (call_.report_routing)
      choice["routing"] = routing_json(facts_, tokens);
  }

  std::string prompt_text(const choice_output& x) const { return facts_.words->decode(x.prompt); }

  answer_json prompt_logprobs(const choice_output& x, std::uint64_t& offset) const {
    return completion_logprobs(*facts_.words, x.all.prompt_tokens, call_.top_logprobs, offset);
  }

  static void append(answer_json& to, answer_json from) {
    if (to.is_null()) {
      to = std::move(from);
      return;
    }
    for (auto& [name, list] : from.items())
      for (auto& one : list)
        to[name].push_back(std::move(one));
  }

  struct opening {
    bool done = false;
    std::uint64_t text_offset = 0;
  };
  generation_call call_;
  answer_facts facts_;
  bool is_chat_;
  std::vector<opening> opened_; ///< of each choice
};

} // namespace

std::unique_ptr<answer_format> make_openai_answer(const generation_call& call, answer_facts facts) {
  return std::make_unique<openai_answer>(call, std::move(facts));
}

} // namespace tokenrouter
