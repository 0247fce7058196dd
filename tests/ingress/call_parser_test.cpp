#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include "tests/ingress/ingress_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;
using nlohmann::json;

namespace {

const call_tools tools = tools_for_tests();

api_error error_of(const api_result<generation_call>& x) {
  BOOST_REQUIRE(!x);
  return x.error();
}

} // namespace

BOOST_AUTO_TEST_CASE(every_field_of_a_completion_reaches_the_call) {
  const auto call =
      parse_completion(R"({"model": "tokenrouter", "prompt": "What is", "max_tokens": 9,
      "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "seed": -3, "n": 2, "echo": true,
      "stop": "x", "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true},
      "ignore_eos": true,
      "logprobs": 3, "return_token_ids": true, "routing": {"request_score": 0.25}, "user": "me",
      "suffix": null, "best_of": 2, "presence_penalty": 0.0, "logit_bias": {}})",
                       tools);
  BOOST_REQUIRE_MESSAGE(call.has_value(), (call ? "" : call.error().message));
  BOOST_TEST(call->prompts.size() == 1u);
  BOOST_TEST((call->prompts[0] == tools.words->encode("What is").value()));
  BOOST_TEST(call->max_new_tokens.value() == 9u);
  BOOST_TEST(call->choices_per_prompt == 2u);
  const auto& sampling = call->each.sampling;
  BOOST_TEST(sampling.temperature == 0.5f);
  BOOST_TEST(sampling.top_p == 0.9f);
  BOOST_TEST(sampling.top_k == 40u);
  BOOST_TEST(sampling.min_p == 0.1f);
  BOOST_TEST(sampling.seed == static_cast<std::uint64_t>(-3));
  BOOST_TEST(call->each.stop == std::vector<std::string>{"x"});
  BOOST_TEST(call->each.ignore_eos);
  BOOST_TEST(call->each.request_score == 0.25f);
  BOOST_TEST((call->stream && call->include_usage && call->continuous_usage && call->echo &&
              call->logprobs));
  BOOST_TEST(call->top_logprobs == 3u);
  BOOST_TEST((call->return_token_ids && call->report_routing));
}

BOOST_AUTO_TEST_CASE(what_is_left_out_or_null_has_openais_default) {
  const auto completion = parse_completion(R"({"prompt": [5, 6], "max_tokens": null})", tools);
  BOOST_REQUIRE(completion);
  BOOST_TEST(completion->max_new_tokens.value() == 16u);
  BOOST_TEST(completion->each.sampling.temperature == 1.0f);
  BOOST_TEST(completion->each.sampling.top_p == 1.0f);
  BOOST_TEST(!completion->stream);
  BOOST_TEST(!completion->is_batch);
  BOOST_TEST(completion->model == "tokenrouter");
  const auto other = parse_completion(R"({"prompt": [5, 6]})", tools);
  BOOST_TEST(completion->each.sampling.seed != other->each.sampling.seed);
  const auto chat = parse_chat(R"({"messages": [{"role": "user", "content": "a"}]})", tools);
  BOOST_REQUIRE(chat);
  BOOST_TEST(!chat->max_new_tokens.has_value());
}

BOOST_AUTO_TEST_CASE(prompts_come_as_text_or_ids_alone_or_in_lists) {
  struct row {
    const char* prompt;
    std::size_t count;
    bool batch;
  };
  for (const row& x :
       {row{R"("a b")", 1, false}, row{"[1, 2, 3]", 1, false}, row{R"(["a", "b", "c"])", 3, true},
        row{"[[1], [2, 3]]", 2, true}, row{R"(["a", [1]])", 2, true}}) {
    const auto call = parse_completion("{\"prompt\": " + std::string(x.prompt) + "}", tools);
    BOOST_REQUIRE_MESSAGE(call.has_value(), x.prompt);
    BOOST_TEST(call->prompts.size() == x.count);
    BOOST_TEST(call->is_batch == x.batch);
  }
  for (const char* prompt : {R"("")", "[]", "[[]]", "[1, 2.5]", "[-1]", "[true]", "{}", "7",
                             R"([1, "a"])", "[4294967296]"})
    BOOST_TEST(error_of(parse_completion("{\"prompt\": " + std::string(prompt) + "}", tools))
                       .param.rfind("prompt", 0) == 0u,
               prompt);
}

BOOST_AUTO_TEST_CASE(parts_of_a_message_are_joined_and_thinking_can_be_switched_off) {
  const auto call = parse_chat(
      R"({"messages": [{"role": "system", "content": "a"}, {"role": "user", "content":
          [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}],
          "chat_template_kwargs": {"enable_thinking": false}})",
      tools);
  BOOST_REQUIRE(call);
  BOOST_TEST(tools.words->decode(call->prompts[0]) == "system: a\nuser: bc\nanswer");
}

BOOST_AUTO_TEST_CASE(a_field_that_is_not_known_is_named_wherever_it_stands) {
  struct row {
    const char *body, *param;
  };
  for (const row& x :
       {row{R"({"prompt": "a", "logit_bias": {"5": 101}})", "logit_bias"},
        row{R"({"prompt": "a", "stream": true, "stream_options": {"x": 1}})", "stream_options.x"},
        row{R"({"prompt": "a", "guided_json": {}})", "guided_json"},
        row{R"({"prompt": "a", "n": 257})", "n"}, row{R"({"prompt": "a", "n": 1.5})", "n"},
        row{R"({"prompt": ["a", "b"], "n": 200})", "n"},
        row{R"({"prompt": "a", "top_p": 0})", "top_p"},
        row{R"({"prompt": "a", "temperature": "hot"})", "temperature"},
        row{R"({"prompt": "a", "seed": 18446744073709551615})", "seed"}})
    BOOST_TEST(error_of(parse_completion(x.body, tools)).param == x.param, x.body);
  for (const row& x :
       {row{R"({"messages": [{"role": "user", "content": "a", "tool_calls": []}]})",
            "messages[0].tool_calls"},
        row{R"({"messages": [{"role": "user", "content": "a"}], "tools": [{}]})", "tools[0]"},
        row{R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 3,
                "max_completion_tokens": 4})",
            "max_completion_tokens"},
        row{R"({"messages": [{"role": "user", "content": "a"}], "response_format":
                {"type": "json_object"}})",
            "response_format"}})
    BOOST_TEST(error_of(parse_chat(x.body, tools)).param == x.param, x.body);
  BOOST_TEST(error_of(parse_generate(R"({"text": "a", "sampling_params": {"regex": "x"}})", tools))
                 .param == "sampling_params.regex");
  BOOST_TEST(error_of(parse_generate(R"({"text": "a", "input_ids": [1]})", tools)).param == "text");
}

BOOST_AUTO_TEST_CASE(bodies_that_are_no_json_object_are_refused) {
  for (const std::string& body :
       {std::string(), std::string("null"), std::string("{\"prompt\": \"\xff\"}"),
        std::string("{\"prompt\": \"a\"} x"), std::string(100'000, '['),
        "{\"prompt\": " + std::string(5000, '[') + std::string(5000, ']') + "}"})
    BOOST_TEST(error_of(parse_completion(body, tools)).status == 400u);
}

BOOST_AUTO_TEST_CASE(generate_reads_sglangs_names) {
  const auto call = parse_generate(
      R"({"input_ids": [[1], [2]], "sampling_params": {"max_new_tokens": 5, "temperature": 0,
          "top_k": -1, "stop": ["a"], "n": 2}, "return_logprob": true, "top_logprobs_num": 2})",
      tools);
  BOOST_REQUIRE(call);
  BOOST_TEST(call->prompts.size() == 2u);
  BOOST_TEST(call->max_new_tokens.value() == 5u);
  BOOST_TEST(call->each.sampling.top_k == 0u);
  BOOST_TEST(call->choices_per_prompt == 2u);
  BOOST_TEST(call->top_logprobs == 2u);
}

BOOST_AUTO_TEST_CASE(biases_are_sorted) {
  const std::string body = R"({"prompt": "a", "logit_bias": {"50": -100, "7": 0.5}})";
  const auto call = parse_completion(body, tools);
  BOOST_REQUIRE(call);
  BOOST_TEST((call->each.sampling.biases == std::vector<logit_bias>{{7, 0.5f}, {50, -100.0f}}));
  const auto generate =
      parse_generate(R"({"text": "a", "sampling_params": {"logit_bias": {"7": 1}}})", tools);
  BOOST_REQUIRE(generate);
  BOOST_TEST(generate->each.sampling.biases.size() == 1u);
}

BOOST_AUTO_TEST_CASE(routing_of_one_request_is_its_own) {
  call_tools routed = tools;
  routed.threshold_max = 1;
  routed.single_models = {"xs", "m"};
  const auto call = parse_completion(
      R"({"prompt": "a", "routing": {"threshold": 0.1, "report": false}})", routed);
  BOOST_REQUIRE(call);
  BOOST_TEST(call->each.threshold.value() == 0.1);
  BOOST_TEST(!call->report_routing);
  const auto forced = parse_completion(R"({"prompt": "a", "routing": {"model": "m"}})", routed);
  BOOST_REQUIRE(forced);
  BOOST_TEST(forced->each.only_model->value == 1u);
  BOOST_TEST(forced->model == "tokenrouter");
  BOOST_TEST(error_of(parse_completion(R"({"prompt": "a", "routing": {"threshold": 0.1}})", tools))
                 .param == "routing.threshold");
  BOOST_TEST(
      error_of(parse_completion(R"({"prompt": "a", "routing": {"model": "s"}})", routed)).param ==
      "routing.model");
}
