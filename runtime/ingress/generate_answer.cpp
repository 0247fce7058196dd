#include <string>
#include <utility>

#include "runtime/ingress/answer.hpp"
#include "runtime/ingress/answer_json.hpp"

namespace tokenrouter {

namespace {

/// /generate, in SGLang's shape: text and tokens so far, with what is known of them.
class generate_answer final : public answer_format {
 public:
  generate_answer(const generation_call& call, answer_facts facts)
      : call_(call), facts_(std::move(facts)) {}

  std::string whole(const std::vector<choice_output>& choices) override {
    if (choices.size() == 1 && !call_.is_batch)
      return dump(state_of(choices.front()));
    answer_json list = answer_json::array();
    for (const auto& x : choices)
      list.push_back(state_of(x));
    return dump(list);
  }

  void piece(const choice_output& x, const generation_delta&,
             std::vector<std::string>& events) override {
    events.push_back(dump(event_of(x)));
  }

  void last(const choice_output& x, std::vector<std::string>& events) override {
    events.push_back(dump(event_of(x)));
  }

  void closing(const std::vector<choice_output>&, std::vector<std::string>& events) override {
    events.emplace_back("[DONE]");
  }

 private:
  answer_json event_of(const choice_output& x) const {
    answer_json out = state_of(x);
    out["index"] = x.index;
    return out;
  }

  answer_json state_of(const choice_output& x) const {
    answer_json out, meta;
    out["text"] = x.all.text;
    out["output_ids"] = token_ids_json(x.all.tokens);
    meta["id"] = facts_.id + (x.index > 0 ? "-" + std::to_string(x.index) : "");
    meta["finish_reason"] = finish_of(x);
    meta["prompt_tokens"] = x.prompt.size();
    meta["completion_tokens"] = x.all.tokens.size();
    meta["cached_tokens"] = cached_tokens(x);
    if (x.end)
      meta["e2e_latency"] = static_cast<double>(x.end->total_us) / 1e6;
    if (call_.logprobs)
      add_logprobs(meta, x.all.tokens);
    out["meta_info"] = std::move(meta);
    if (call_.report_routing) {
      out["routing"] = routing_json(facts_, x.all.tokens);
      if (x.end)
        out["routing"]["handoffs"] = x.end->handoffs;
    }
    return out;
  }

  answer_json finish_of(const choice_output& x) const {
    if (!x.end)
      return nullptr;
    if (x.end->finish == finish_reason::length)
      return {{"type", "length"}, {"length", x.all.tokens.size()}};
    return {{"type", finish_text(x.end->finish)}};
  }

  answer_json entry(token_id token, float logprob) const {
    return answer_json::array({finite_logprob(logprob), token, token_text(*facts_.words, token)});
  }

  void add_logprobs(answer_json& meta, const std::vector<generated_token>& tokens) const {
    answer_json own = answer_json::array(), tops = answer_json::array();
    for (const auto& x : tokens) {
      own.push_back(entry(x.token, x.logprob));
      answer_json top = answer_json::array();
      for (const auto& y : x.top)
        top.push_back(entry(y.token, y.logprob));
      tops.push_back(std::move(top));
    }
    meta["output_token_logprobs"] = std::move(own);
    if (call_.top_logprobs > 0)
      meta["output_top_logprobs"] = std::move(tops);
  }

  generation_call call_;
  answer_facts facts_;
};

} // namespace

std::unique_ptr<answer_format> make_generate_answer(const generation_call& call,
                                                    answer_facts facts) {
  return std::make_unique<generate_answer>(call, std::move(facts));
}

} // namespace tokenrouter
