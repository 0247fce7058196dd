#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include "tests/ingress/ingress_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;
using nlohmann::json;

namespace {

/// A service over a scripted job, and one client's call.
struct bench {
  scripted_engine job;
  service endpoints;
  std::shared_ptr<recorded_exchange> client = std::make_shared<recorded_exchange>();

  bench() : endpoints(job, options()) {}
  ~bench() { client->forget(); }
  explicit bench(const std::string& template_source) : endpoints(job, with(template_source)) {}

  static service_options with(const std::string& template_source) {
    auto out = options();
    out.tools.form = chat_template::parse(template_source, "T");
    return out;
  }

  static service_options options(std::vector<std::string> keys = {}) {
    return {tools_for_tests(), std::move(keys), 1000};
  }
  void call(const std::string& target, const json& body, const std::string& method = "POST") {
    endpoints.handle({method, target, "", body.dump()}, client);
  }
  json answer() {
    client->run();
    BOOST_REQUIRE_EQUAL(client->replies, 1);
    return json::parse(client->whole.body);
  }
};

std::vector<json> events(const std::string& stream) {
  std::vector<json> out;
  for (std::size_t at = 0; (at = stream.find("data: ", at)) != std::string::npos; at += 6) {
    const auto text = stream.substr(at + 6, stream.find("\n\n", at) - at - 6);
    if (text != "[DONE]")
      out.push_back(json::parse(text));
  }
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_answer_waits_for_every_choice_and_keeps_their_order) {
  bench b;
  b.call("/v1/completions", {{"prompt", {"a", "b"}}, {"n", 2}, {"echo", true}, {"seed", 5}});
  BOOST_REQUIRE(b.job.orders.size() == 4u);
  for (int i = 0; i < 4; ++i)
    BOOST_TEST(b.job.orders[i].sampling.seed == 5u + i % 2);
  for (const int i : {3, 1, 0, 2}) {
    BOOST_TEST(b.client->replies == 0);
    b.job.say(i, std::to_string(i) + " is it");
    b.job.finish(i, i == 3 ? finish_reason::length : finish_reason::stop);
    b.client->run();
  }
  const auto out = b.answer();
  BOOST_TEST(b.client->whole.status == 200u);
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST(out["choices"][i]["index"] == i);
    BOOST_TEST(out["choices"][i]["text"] ==
               std::string(i < 2 ? "a" : "b") + std::to_string(i) + " is it");
    BOOST_TEST(out["choices"][i]["finish_reason"] == (i == 3 ? "length" : "stop"));
  }
  BOOST_TEST(out["usage"]["prompt_tokens"] == 2);
}

BOOST_AUTO_TEST_CASE(tokens_and_their_logprobs_stay_together_in_every_chunk) {
  bench b;
  b.call("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                                  {"stream", true},
                                  {"logprobs", true},
                                  {"return_token_ids", true},
                                  {"routing", true}});
  for (const char* text : {"What is", " 4822", " + 22?"}) {
    b.job.say(0, text);
    if (text[1] != '4') // two deltas at a time come as one chunk
      b.client->run();
  }
  b.job.finish(0);
  b.client->run();
  BOOST_TEST(b.client->ended);
  const auto chunks = events(b.client->stream);
  BOOST_REQUIRE(chunks.size() == 4u);
  std::string text;
  for (std::size_t i = 1; i < 3; ++i) {
    const auto& choice = chunks[i]["choices"][0];
    const auto& content = choice["logprobs"]["content"];
    BOOST_TEST(content.size() == choice["token_ids"].size());
    BOOST_TEST(content.size() == choice["routing"]["models"].size());
    std::string joined;
    for (const auto& one : content) {
      joined += one["token"].get<std::string>();
      BOOST_TEST(one["logprob"] == -0.5);
      BOOST_TEST(one["bytes"].size() == one["token"].get<std::string>().size());
    }
    BOOST_TEST(joined == choice["delta"]["content"].get<std::string>());
    text += joined;
  }
  BOOST_TEST(text == "What is 4822 + 22?");
  BOOST_TEST(chunks[3]["choices"][0]["finish_reason"] == "stop");
  BOOST_TEST(chunks[3]["choices"][0]["routing"]["handoffs"] == 3);
}

BOOST_AUTO_TEST_CASE(a_stream_tells_usage_at_its_end_or_all_along_as_asked) {
  for (const bool all_along : {false, true}) {
    bench b;
    b.call("/v1/completions",
           {{"prompt", "a"},
            {"stream", true},
            {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", all_along}}}});
    std::size_t tokens = 0;
    std::vector<std::size_t> told;
    for (const char* text : {"What is", " 4822"}) {
      b.job.say(0, text);
      b.client->run();
      tokens += tools_for_tests().words->encode(text).value().size();
      told.push_back(tokens);
    }
    b.job.finish(0);
    b.client->run();
    const auto chunks = events(b.client->stream);
    BOOST_REQUIRE(chunks.size() == 4u); // two pieces, the finish, the usage
    told.push_back(tokens);
    for (std::size_t i = 0; i < 3; ++i) {
      BOOST_TEST(chunks[i]["usage"].is_null() == !all_along);
      if (all_along) {
        BOOST_TEST(chunks[i]["usage"]["prompt_tokens"] == 1);
        BOOST_TEST(chunks[i]["usage"]["completion_tokens"] == told[i]);
      }
    }
    BOOST_TEST(chunks[3]["choices"].empty());
    BOOST_TEST(chunks[3]["usage"]["completion_tokens"] == tokens);
  }
}

BOOST_AUTO_TEST_CASE(text_offsets_count_characters) {
  bench b;
  b.call("/v1/completions", {{"prompt", "a"}, {"logprobs", 0}});
  b.job.say(0, "caf\u00e9 is \u00e9");
  b.job.finish(0);
  const auto logprobs = b.answer()["choices"][0]["logprobs"];
  const auto& tokens = logprobs["tokens"];
  BOOST_TEST(logprobs["top_logprobs"].is_null());
  BOOST_REQUIRE(tokens.size() == logprobs["text_offset"].size());
  BOOST_REQUIRE(tokens.size() == logprobs["token_logprobs"].size());
  BOOST_TEST(logprobs["text_offset"][0] == 0);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] == " is")
      BOOST_TEST(logprobs["text_offset"][i] == 4);
}

BOOST_AUTO_TEST_CASE(a_client_that_goes_cancels_all_choices_and_hears_no_more) {
  bench b;
  b.call("/v1/completions", {{"prompt", "a"}, {"n", 3}, {"stream", true}});
  b.job.say(1, "x");
  b.client->run();
  const std::string before = b.client->stream;
  b.client->gone();
  BOOST_TEST(b.job.cancelled == (std::vector<std::uint64_t>{0, 1, 2}),
             boost::test_tools::per_element());
  b.job.say(1, "y");
  for (int i = 0; i < 3; ++i)
    b.job.finish(i, finish_reason::cancelled);
  b.client->run();
  BOOST_TEST(b.client->stream == before);
  BOOST_TEST(b.client->replies == 0);
}

BOOST_AUTO_TEST_CASE(a_client_that_takes_nothing_is_cut_off) {
  bench b;
  b.call("/v1/completions", {{"prompt", "a"}, {"stream", true}});
  b.client->unsent = 1001;
  b.job.say(0, "x");
  b.client->run();
  BOOST_TEST(b.client->aborted);
  BOOST_TEST(b.job.cancelled.size() == 1u);
}

BOOST_AUTO_TEST_CASE(failures_have_their_status_before_a_stream_and_an_event_in_it) {
  struct row {
    errc code;
    unsigned status;
  };
  for (const row& x : {row{errc::invalid_argument, 400}, row{errc::capacity, 400},
                       row{errc::unavailable, 503}, row{errc::internal, 500}}) {
    bench before;
    before.call("/v1/completions", {{"prompt", "a"}, {"stream", true}});
    before.job.finish(0, finish_reason::failed, {x.code, "so it is"});
    BOOST_TEST(before.answer()["error"]["message"] == "so it is");
    BOOST_TEST(before.client->whole.status == x.status);
    bench within;
    within.call("/v1/completions", {{"prompt", "a"}, {"n", 2}, {"stream", true}});
    within.job.say(0, "x");
    within.client->run();
    within.job.finish(1, finish_reason::failed, {x.code, "so it is"});
    within.client->run();
    BOOST_TEST(events(within.client->stream).back()["error"]["message"] == "so it is");
    BOOST_TEST(within.client->ended);
    BOOST_TEST(within.job.cancelled.size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(calls_beyond_the_queue_are_told_to_come_again) {
  bench b;
  b.job.requests_max = 2;
  b.call("/v1/completions", {{"prompt", "a"}, {"n", 3}});
  BOOST_TEST(b.answer()["error"]["code"] == "too_many_requests");
  BOOST_TEST(b.client->whole.status == 429u);
  BOOST_TEST(b.client->whole.retry_after_s == 1u);
  BOOST_TEST(b.job.cancelled.size() == 2u); // those that had been let in
  bench draining;
  draining.job.now.phase = engine_phase::draining;
  draining.call("/v1/completions", {{"prompt", "a"}});
  draining.answer();
  BOOST_TEST(draining.client->whole.status == 503u);
}

BOOST_AUTO_TEST_CASE(as_many_tokens_as_fit_are_asked_for_where_a_chat_does_not_say) {
  bench b;
  b.job.now.pool_tokens_min = 512;
  b.call("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "a"}}}}});
  BOOST_TEST(b.job.orders[0].prompt.size() + b.job.orders[0].max_new_tokens == 512u);
}

BOOST_AUTO_TEST_CASE(healthy_is_a_job_that_is_ready_and_responds) {
  struct row {
    engine_phase phase;
    bool responds;
    const char* fault;
    unsigned status;
    const char* says;
  };
  for (const row& x :
       {row{engine_phase::ready, true, "", 200, "ok"},
        row{engine_phase::loading, true, "", 503, "loading"},
        row{engine_phase::draining, true, "", 503, "draining"},
        row{engine_phase::failed, true, "", 503, "failed"},
        row{engine_phase::ready, true, "rank 1: no sign of life", 503, "rank 1: no sign of life"},
        row{engine_phase::ready, false, "", 503, "the control thread does not respond"}}) {
    bench b;
    b.job.now.phase = x.phase;
    b.job.responds = x.responds;
    b.job.fault = x.fault;
    b.call("/health", {}, "GET");
    b.client->run();
    for (const auto& late : b.client->later)
      late();
    BOOST_TEST(b.answer()["status"] == x.says);
    BOOST_TEST(b.client->whole.status == x.status);
  }
}

BOOST_AUTO_TEST_CASE(a_job_that_goes_on_without_a_rank_is_degraded_and_says_what_is_lost) {
  bench b;
  b.job.now.lost_ranks = {2, 5};
  b.job.now.models.resize(b.job.facts().models.size());
  b.job.now.models.at(0).lost_replicas = 1;
  b.call("/health", {}, "GET");
  b.client->run();
  BOOST_TEST(b.client->whole.status == 200u);
  BOOST_TEST(b.answer()["status"] == "degraded");
  const std::string lost = b.answer()["lost"];
  BOOST_TEST(lost.find("rank 2, rank 5, 1 of ") == 0u, lost);
}

BOOST_AUTO_TEST_CASE(with_keys_nothing_but_health_and_the_page_is_open_without_one) {
  scripted_engine job;
  service endpoints(job, bench::options({"first", "second"}));
  struct row {
    const char *target, *authorization;
    unsigned status;
  };
  for (const row& x : {row{"/v1/models", "", 401}, row{"/v1/models", "Bearer nonesuch", 401},
                       row{"/v1/models", "Bearer firs", 401}, row{"/v1/models", "first", 401},
                       row{"/v1/models", "Bearer second", 200}, row{"/metrics", "", 401},
                       row{"/nothing", "", 401}, row{"/health", "", 200}, row{"/", "", 200}}) {
    const auto client = std::make_shared<recorded_exchange>();
    endpoints.handle({"GET", x.target, x.authorization, ""}, client);
    client->run();
    BOOST_TEST(client->whole.status == x.status, x.target << " with " << x.authorization);
    client->forget();
  }
}

BOOST_AUTO_TEST_CASE(calls_of_tools_are_told_apart_from_text_whole_and_in_streams) {
  const json body = {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                     {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}};
  const std::vector<std::string> pieces = {"Let me see.", "<tool_", "call>{\"name\": \"f\", ",
                                           "\"arguments\": {\"b\": 1, \"a\": 2}}</tool_call>",
                                           "\n<tool_call>{\"name\": \"g\", \"arguments\": {}}"};
  const auto run = [&](bool stream, finish_reason finish) {
    auto b = std::make_unique<bench>("{{ messages[0].content }}{{ tools | tojson }}"
                                     "{# <tool_call>\"arguments\" #}");
    json own = body;
    own["stream"] = stream;
    b->call("/v1/chat/completions", own);
    for (const auto& piece : pieces) {
      b->job.say(0, piece);
      b->client->run();
    }
    b->job.finish(0, finish);
    return b;
  };
  const auto whole = run(false, finish_reason::stop)->answer()["choices"][0];
  BOOST_TEST(whole["finish_reason"] == "tool_calls");
  BOOST_TEST(whole["message"]["content"] == "Let me see.");
  const auto& calls = whole["message"]["tool_calls"];
  BOOST_REQUIRE(calls.size() == 2u);
  BOOST_TEST(calls[0]["type"] == "function");
  BOOST_TEST(calls[0]["function"]["name"] == "f");
  BOOST_TEST(calls[0]["function"]["arguments"] == R"({"b":1,"a":2})");
  BOOST_TEST(calls[0]["id"] != calls[1]["id"]);

  const auto streamed = run(true, finish_reason::stop);
  streamed->client->run();
  std::string text, names, finish;
  std::size_t number = 0;
  for (const auto& event : events(streamed->client->stream)) {
    const auto& choice = event["choices"][0];
    text += choice["delta"].value("content", "");
    for (const auto& call : choice["delta"].value("tool_calls", json::array())) {
      BOOST_TEST(call["index"] == number++);
      names += call["function"]["name"].get<std::string>();
    }
    if (!choice["finish_reason"].is_null())
      finish = choice["finish_reason"];
  }
  BOOST_TEST(text == "Let me see.");
  BOOST_TEST(names == "fg");
  BOOST_TEST(finish == "tool_calls");
  // Cut short it is still cut short.
  BOOST_TEST(run(false, finish_reason::length)->answer()["choices"][0]["finish_reason"] ==
             "length");
}

BOOST_AUTO_TEST_CASE(the_page_is_whole_in_one_answer) {
  bench b;
  b.call("/", {}, "GET");
  const auto& page = b.client->whole;
  BOOST_TEST(page.content_type == "text/html; charset=utf-8");
  BOOST_TEST(page.body.starts_with("<!doctype html>"));
  BOOST_TEST(page.body.ends_with("</html>\n"));
  for (const char* elsewhere : {"https://", " src=", "@import", "url(", "//cdn"})
    BOOST_TEST(page.body.find(elsewhere) == std::string::npos, elsewhere);
}

BOOST_AUTO_TEST_CASE(text_goes_to_tokens_and_back) {
  bench b;
  b.call("/tokenize", {{"prompt", "What is 4822?"}});
  const auto tokens = b.answer();
  BOOST_TEST(tokens["count"] == tokens["tokens"].size());
  bench c;
  c.call("/detokenize", {{"tokens", tokens["tokens"]}});
  BOOST_TEST(c.answer()["prompt"] == "What is 4822?");
  bench d;
  d.call("/detokenize", {{"tokens", "abc"}});
  BOOST_TEST(d.answer()["error"]["param"] == "tokens");
}

BOOST_AUTO_TEST_CASE(generate_answers_in_sglangs_shape) {
  bench b;
  b.call("/generate", {{"text", "a"}, {"return_logprob", true}});
  b.job.say(0, "What is");
  b.job.finish(0, finish_reason::length);
  const auto out = b.answer();
  BOOST_TEST(out["text"] == "What is");
  BOOST_TEST(out["meta_info"]["finish_reason"]["type"] == "length");
  BOOST_TEST(out["meta_info"]["completion_tokens"] == out["output_ids"].size());
  BOOST_TEST(out["meta_info"]["output_token_logprobs"][0][0] == -0.5);
  bench batch;
  batch.call("/generate", {{"text", {"a"}}});
  batch.job.finish(0);
  BOOST_TEST(batch.answer().is_array());
}
