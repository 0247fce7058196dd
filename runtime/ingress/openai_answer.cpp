#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "runtime/ingress/answer.hpp"
#include "runtime/ingress/answer_json.hpp"
#include "runtime/ingress/logprobs_json.hpp"
#include "runtime/ingress/tool_call_scanner.hpp"

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
    const tool_scan settled = scan(x, fresh.text);
    if (nothing_in(settled) && !(tells_tokens && !fresh.tokens.empty()))
      return;
    answer_json choice = part(x, settled);
    add_details(choice, x, fresh.tokens);
    events.push_back(event(x, std::move(choice)));
  }

  void last(const choice_output& x, std::vector<std::string>& events) override {
    open(x, events);
    auto& state = opened_[x.index];
    if (state.scanner)
      if (const tool_scan settled = state.scanner->finish(); !nothing_in(settled))
        events.push_back(event(x, part(x, settled)));
    answer_json choice = part(x, {});
    if (is_chat_)
      choice["delta"] = answer_json::object();
    choice["finish_reason"] = finish_of(x, state.told_calls > 0);
    if (call_.report_routing)
      choice["routing"] = {{"handoffs", x.end->handoffs}};
    events.push_back(event(x, std::move(choice)));
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

  std::string event(const choice_output& x, answer_json choice) const {
    answer_json out = head(true);
    out["choices"] = answer_json::array({std::move(choice)});
    if (call_.continuous_usage)
      out["usage"] = usage_json(x);
    else if (call_.include_usage)
      out["usage"] = nullptr;
    return dump(out);
  }

  static bool nothing_in(const tool_scan& x) { return x.content.empty() && x.calls.empty(); }

  std::optional<tool_call_scanner> new_scanner() const {
    if (call_.calls == tool_call_form::none)
      return std::nullopt;
    return tool_call_scanner(call_.calls, call_.tool_names);
  }

  /// What of the choice is settled now that `text` has come.
  tool_scan scan(const choice_output& x, const std::string& text) {
    auto& scanner = opened_[x.index].scanner;
    return scanner ? scanner->push(text) : tool_scan{text, {}};
  }

  std::string finish_of(const choice_output& x, bool has_calls) const {
    return has_calls && x.end->finish == finish_reason::stop ? "tool_calls"
                                                             : finish_text(x.end->finish);
  }

  /// `first`: number of the first of them in its choice.
  answer_json calls_json(const choice_output& x, const std::vector<tool_call>& calls,
                         std::size_t first, bool numbered) const {
    answer_json list = answer_json::array();
    for (const auto& call : calls) {
      answer_json one;
      const std::size_t number = first + list.size();
      if (numbered)
        one["index"] = number;
      one["id"] =
          "call_" + facts_.id + "_" + std::to_string(x.index) + "_" + std::to_string(number);
      one["type"] = "function";
      one["function"] = {{"name", call.name}, {"arguments", call.arguments}};
      list.push_back(std::move(one));
    }
    return list;
  }

  /// A choice of a chunk with that and nothing else yet.
  answer_json part(const choice_output& x, const tool_scan& settled) {
    answer_json choice;
    choice["index"] = x.index;
    if (!is_chat_)
      choice["text"] = settled.content;
    else if (settled.calls.empty() || !settled.content.empty())
      choice["delta"]["content"] = settled.content;
    if (!settled.calls.empty()) {
      auto& told = opened_[x.index].told_calls;
      choice["delta"]["tool_calls"] = calls_json(x, settled.calls, told, true);
      told += settled.calls.size();
    }
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
    opened_[x.index].scanner = new_scanner();
    if (is_chat_) {
      answer_json choice = part(x, {});
      choice["delta"] = {{"role", "assistant"}, {"content", ""}};
      events.push_back(event(x, std::move(choice)));
    } else if (call_.echo || call_.return_token_ids) {
      answer_json choice = part(x, {call_.echo ? prompt_text(x) : "", {}});
      if (call_.echo && call_.logprobs)
        choice["logprobs"] = prompt_logprobs(x, opened_[x.index].text_offset);
      if (call_.return_token_ids)
        choice["prompt_token_ids"] = x.prompt;
      events.push_back(event(x, std::move(choice)));
    }
  }

  answer_json message_of(const choice_output& x, const tool_scan& all) const {
    answer_json out;
    out["role"] = "assistant";
    out["content"] = all.content;
    if (all.calls.empty())
      return out;
    if (all.content.empty())
      out["content"] = nullptr;
    out["tool_calls"] = calls_json(x, all.calls, 0, false);
    return out;
  }

  answer_json whole_choice(const choice_output& x) const {
    tool_scan all{x.all.text, {}};
    if (auto scanner = new_scanner()) {
      all = scanner->push(x.all.text);
      tool_scan rest = scanner->finish();
      all.content += rest.content;
      std::ranges::move(rest.calls, std::back_inserter(all.calls));
    }
    answer_json choice;
    choice["index"] = x.index;
    if (is_chat_)
      choice["message"] = message_of(x, all);
    else
      choice["text"] = (call_.echo ? prompt_text(x) : "") + x.all.text;
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = finish_of(x, !all.calls.empty());
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
    std::optional<tool_call_scanner> scanner; ///< where the answer may hold calls
    std::size_t told_calls = 0;
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
