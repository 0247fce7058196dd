#include <boost/test/unit_test.hpp>

#include <cmath>

#include "tests/support/server.hpp"

using namespace tokenrouter::test;
using nlohmann::json;

namespace {

const std::string config = "configs/r2r/abacus-xs_abacus-m.yaml";
const std::string text = "What is 4822 + 22 - 2763? It is";

/// Small chunks, so that a prompt's tokens are scored over several steps.
test_server& shared_server() {
  static test_server server(2, config, "--set compute_dtype=float32 --set prefill_chunk_tokens=5");
  return server;
}

json post(const json& body, const std::string& target = "/v1/completions") {
  http_client client(shared_server().port());
  const auto answer = client.post(target, body);
  BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return answer.json();
}

std::vector<int> tokens_of(const std::string& prompt) {
  return post({{"prompt", prompt}}, "/tokenize")["tokens"];
}

json choice_of(json body) {
  body["temperature"] = 0;
  return post(body)["choices"][0];
}

} // namespace

BOOST_AUTO_TEST_CASE(an_echoed_prompt_is_as_likely_as_its_tokens_when_they_are_generated) {
  // One model writes ten tokens; the same ten as part of a prompt must score alike.
  const auto written = choice_of({{"prompt", text},
                                  {"max_tokens", 10},
                                  {"logprobs", 2},
                                  {"return_token_ids", true},
                                  {"model", "abacus-xs"}});
  auto ids = tokens_of(text);
  const std::size_t prompt_tokens = ids.size();
  for (const int id : written["token_ids"])
    ids.push_back(id);
  const auto echoed = choice_of({{"prompt", ids},
                                 {"max_tokens", 0},
                                 {"echo", true},
                                 {"logprobs", 2},
                                 {"return_token_ids", true},
                                 {"model", "abacus-xs"}});
  BOOST_TEST(echoed["token_ids"].empty());
  BOOST_TEST(echoed["text"] == text + written["text"].get<std::string>());
  const auto& own = written["logprobs"];
  const auto& all = echoed["logprobs"];
  BOOST_REQUIRE(all["tokens"].size() == ids.size());
  BOOST_REQUIRE(all["text_offset"].size() == ids.size());
  BOOST_TEST(all["token_logprobs"][0].is_null());
  BOOST_TEST(all["top_logprobs"][0].is_null());
  for (std::size_t i = 0; i < 10; ++i) {
    const std::size_t at = prompt_tokens + i;
    BOOST_TEST(all["tokens"][at] == own["tokens"][i]);
    BOOST_TEST(all["top_logprobs"][at] == own["top_logprobs"][i]);
    BOOST_TEST(all["token_logprobs"][at] == own["token_logprobs"][i]);
    // Greedy: what was written is the likeliest.
    double best = -1e9;
    for (const auto& [name, value] : own["top_logprobs"][i].items())
      best = std::max(best, value.get<double>());
    BOOST_TEST(own["token_logprobs"][i] == best);
  }
}

BOOST_AUTO_TEST_CASE(a_prompt_is_scored_whatever_is_cached_streamed_or_routed) {
  json body = {{"prompt", text}, {"max_tokens", 4}, {"echo", true}, {"logprobs", 1}};
  const auto first = choice_of(body);
  const auto again = choice_of(body); // its KV is in the prefix cache now
  BOOST_TEST(first == again);
  body["stream"] = true;
  body["temperature"] = 0;
  http_client client(shared_server().port());
  const auto events = events_of(client.post("/v1/completions", body).body);
  json joined = {{"tokens", json::array()},
                 {"token_logprobs", json::array()},
                 {"top_logprobs", json::array()},
                 {"text_offset", json::array()}};
  std::string streamed;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const auto choice = json::parse(events[i])["choices"][0];
    streamed += choice["text"];
    if (!choice["logprobs"].is_null())
      for (auto& [name, list] : joined.items())
        for (const auto& one : choice["logprobs"][name])
          list.push_back(one);
  }
  BOOST_TEST(streamed == first["text"]);
  BOOST_TEST(joined == first["logprobs"]);
}

BOOST_AUTO_TEST_CASE(top_logprobs_of_a_chat_are_sorted_and_hold_the_token) {
  const auto answer = post({{"messages", {{{"role", "user"}, {"content", "What is 3 * 14?"}}}},
                            {"temperature", 0},
                            {"max_tokens", 40},
                            {"logprobs", true},
                            {"top_logprobs", 5},
                            {"routing", true}},
                           "/v1/chat/completions");
  const auto& content = answer["choices"][0]["logprobs"]["content"];
  BOOST_TEST(content.size() == answer["usage"]["completion_tokens"].get<std::size_t>());
  for (const auto& one : content) {
    const auto& top = one["top_logprobs"];
    BOOST_REQUIRE(top.size() == 5u);
    double sum = 0;
    for (std::size_t i = 0; i < top.size(); ++i) {
      BOOST_TEST(
          (i == 0 || top[i]["logprob"].get<double>() <= top[i - 1]["logprob"].get<double>()));
      sum += std::exp(top[i]["logprob"].get<double>());
    }
    BOOST_TEST(sum <= 1.0001);
    BOOST_TEST(top[0]["token"] == one["token"]);
    BOOST_TEST(top[0]["logprob"] == one["logprob"]);
  }
}

BOOST_AUTO_TEST_CASE(a_single_model_asked_for_by_name_writes_all_of_it) {
  for (const std::string model : {"abacus-xs", "abacus-m"}) {
    const auto answer = post({{"prompt", text},
                              {"temperature", 0},
                              {"max_tokens", 40},
                              {"model", model},
                              {"routing", true},
                              {"return_token_ids", true}});
    BOOST_TEST(answer["model"] == model);
    const auto& routing = answer["choices"][0]["routing"];
    BOOST_TEST(routing["handoffs"] == 0);
    for (const auto& maker : routing["models"])
      BOOST_TEST(maker == model);
    const scratch_folder scratch;
    write_file(scratch.file("in.jsonl"), json{{"prompt", text}}.dump() + "\n");
    const auto run =
        run_command(program() + " generate --config configs/single/" + model +
                    ".yaml --set compute_dtype=float32 --max-new-tokens 40 --prompts " +
                    scratch.file("in.jsonl") + " --output " + scratch.file("out.jsonl"));
    BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.output);
    BOOST_TEST(json::parse(read_file(scratch.file("out.jsonl")))["token_ids"] ==
               answer["choices"][0]["token_ids"]);
  }
  const auto models = http_client(shared_server().port()).get("/v1/models").json()["data"];
  BOOST_REQUIRE(models.size() == 3u);
  BOOST_TEST(models[2]["id"] == "abacus-m");
}
