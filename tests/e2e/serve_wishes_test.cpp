#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/support/server.hpp"

using namespace tokenrouter::test;
using nlohmann::json;

namespace {

const std::string config = "configs/r2r/abacus-xs_abacus-m.yaml";
const std::string xs = "abacus-xs", m = "abacus-m";

test_server& shared_server() {
  static test_server server(2, config);
  return server;
}

json completion(const json& more = json::object()) {
  json body = {
      {"prompt", "<|im_start|>user\nWhat is 4822 + 22 - 2763?<|im_end|>\n<|im_start|>assistant\n"},
      {"max_tokens", 60},
      {"temperature", 0},
      {"return_token_ids", true},
      {"routing", true}};
  body.update(more);
  return body;
}

/// The first choice of the answer, which must come.
json choice(const test_server& server, const json& body) {
  const auto answer = http_client(server.port()).post("/v1/completions", body);
  BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return answer.json()["choices"][0];
}

json error(const test_server& server, const json& body) {
  const auto answer = http_client(server.port()).post("/v1/completions", body);
  BOOST_TEST(answer.status == 400, answer.body);
  return answer.json()["error"];
}

long by(const json& answer, const std::string& model) {
  const auto& models = answer["routing"]["models"];
  return std::count(models.begin(), models.end(), model);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_bias_holds_in_every_token_by_every_model_on_any_layout) {
  const auto plain = choice(shared_server(), completion());
  BOOST_REQUIRE(by(plain, m) > 0);
  std::map<int, int> seen;
  for (const int id : plain["token_ids"])
    ++seen[id];
  const int banned = std::ranges::max_element(seen, {}, &std::pair<const int, int>::second)->first;
  const json wish = {{"logit_bias", {{std::to_string(banned), -100}}}, {"logprobs", 1}};
  const auto without = choice(shared_server(), completion(wish));
  for (const int id : without["token_ids"])
    BOOST_TEST(id != banned);
  BOOST_TEST(without["token_ids"] != plain["token_ids"]);
  const test_server alone(0, config);
  const auto again = choice(alone, completion(wish));
  BOOST_TEST(again["token_ids"] == without["token_ids"]);
  BOOST_TEST(again["routing"] == without["routing"]);
  // A forced token keeps its own, raw log-probability.
  const auto forced = choice(alone, completion({{"logit_bias", {{std::to_string(banned), 100}}},
                                                {"logprobs", 1},
                                                {"max_tokens", 4}}));
  BOOST_TEST(forced["token_ids"] == json({banned, banned, banned, banned}));
  const auto& raw = forced["logprobs"]["token_logprobs"];
  BOOST_TEST(std::ranges::min_element(raw)->get<double>() < -1);
}

BOOST_AUTO_TEST_CASE(a_wrong_bias_is_named) {
  json many = json::object();
  for (int i = 0; i < 301; ++i)
    many[std::to_string(i)] = 1;
  for (const json& wrong :
       {json({{"5", 101}}), json({{"5", "x"}}), json({{"x", 1}}), json({{"99999", 1}}),
        json({{"-1", 1}}), json({{"5", 1}, {"05", 1}}), json(3), many})
    BOOST_TEST(error(shared_server(), completion({{"logit_bias", wrong}}))["param"] == "logit_bias",
               wrong);
}

BOOST_AUTO_TEST_CASE(a_request_may_bring_its_own_threshold) {
  const auto& server = shared_server();
  const auto with = [&](double threshold) {
    return choice(server, completion({{"routing", {{"threshold", threshold}}}}));
  };
  const auto plain = choice(server, completion());
  const auto all = with(0), none = with(1);
  BOOST_TEST(by(all, xs) == 0);
  BOOST_TEST(by(all, m) > 0);
  BOOST_TEST(by(none, m) < by(plain, m));
  // The same as a job with that threshold.
  const test_server other(0, config, "--set method.threshold=0.2");
  const auto low = with(0.2);
  BOOST_TEST(low == choice(other, completion()));
  BOOST_TEST(low["routing"] != plain["routing"]);
  BOOST_TEST(choice(server, completion())["routing"] == plain["routing"]);
  for (const json& wrong : {json(-0.1), json(1.5), json("x")})
    BOOST_TEST(error(server, completion({{"routing", {{"threshold", wrong}}}}))["param"] ==
               "routing.threshold");
}

BOOST_AUTO_TEST_CASE(a_threshold_without_effect_is_refused) {
  const test_server server(0, "configs/r2r-momentum/abacus-xs_abacus-m.yaml");
  const auto refused = error(server, completion({{"routing", {{"threshold", 0.5}}}}));
  BOOST_TEST(refused["param"] == "routing.threshold");
  BOOST_TEST((refused["message"].get<std::string>().find("no effect") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(one_model_may_be_forced_for_a_whole_request) {
  const auto& server = shared_server();
  for (const auto& model : {xs, m}) {
    const auto forced = choice(server, completion({{"routing", {{"model", model}}}}));
    BOOST_TEST(by(forced, model) == static_cast<long>(forced["token_ids"].size()));
    json named = completion();
    named["model"] = model;
    BOOST_TEST(choice(server, named)["token_ids"] == forced["token_ids"]);
  }
  json both = completion({{"routing", {{"model", xs}}}});
  both["model"] = m;
  BOOST_TEST(error(server, both)["param"] == "routing.model");
  const auto unknown = http_client(server.port())
                           .post("/v1/completions", completion({{"routing", {{"model", "x"}}}}));
  BOOST_TEST(unknown.status == 404);
  BOOST_TEST(
      error(server, completion({{"routing", {{"model", xs}, {"threshold", 0.5}}}}))["param"] ==
      "routing.threshold");
}

BOOST_AUTO_TEST_CASE(kv_usage_is_what_requests_hold) {
  const test_server server(2, config,
                           "--set models.abacus-m.kv_cache.tokens=4096 "
                           "--set models.abacus-xs.kv_cache.tokens=4096");
  BOOST_TEST(server.metric("vllm:kv_cache_usage_perc") == 0);
  http_client client(server.port());
  const json body = {{"prompt", std::string(900, '7')},
                     {"max_tokens", 1000},
                     {"ignore_eos", true},
                     {"stream", true},
                     {"temperature", 0}};
  client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(body.dump().size()) + "\r\n\r\n" + body.dump());
  BOOST_REQUIRE(client.read_until("data: "));
  const double busy = server.metric("vllm:kv_cache_usage_perc");
  BOOST_TEST(busy > 900.0 / 4096);
  BOOST_TEST(busy < 0.6);
  client.close();
  double idle = 1;
  for (int i = 0; i < 500 && idle > 0; ++i) {
    idle = server.metric("vllm:kv_cache_usage_perc");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  BOOST_TEST(idle == 0);
}

BOOST_AUTO_TEST_CASE(a_model_that_is_long_at_a_step_is_unhealthy_until_it_ends) {
  // Every step of a long prompt takes longer than that.
  const test_server server(2, config, "--set serve.step_timeout_ms=1");
  BOOST_TEST(http_client(server.port()).get("/health").status == 200);
  std::atomic<bool> stop = false;
  std::thread load([&] {
    for (int n = 0; !stop && n < 200; ++n)
      http_client(server.port())
          .post("/v1/completions",
                json{{"prompt",
                      std::string(1500, static_cast<char>('0' + n % 10)) + std::to_string(n)},
                     {"model", m},
                     {"max_tokens", 1}});
  });
  http_answer unhealthy;
  for (int i = 0; i < 2000 && unhealthy.status != 503; ++i)
    unhealthy = http_client(server.port()).get("/health");
  stop = true;
  load.join();
  BOOST_TEST(unhealthy.status == 503);
  BOOST_TEST(
      (unhealthy.body.find("abacus-m on rank 1 has been at one step for") != std::string::npos),
      unhealthy.body);
  BOOST_TEST(http_client(server.port()).get("/health").status == 200);
}

BOOST_AUTO_TEST_CASE(tools_reach_the_models_own_template) {
  // The model of the shipped config with a template that shows tools.
  const scratch_folder scratch;
  namespace fs = std::filesystem;
  for (const auto& file : fs::directory_iterator("examples/models/abacus/abacus-xs"))
    if (file.path().filename() != "chat_template.jinja")
      fs::create_symlink(fs::absolute(file.path()), scratch.file(file.path().filename().string()));
  fs::copy_file("tests/data/jinja/templates/qwen3_style.jinja",
                scratch.file("chat_template.jinja"));
  const test_server server(0, "configs/single/abacus-xs.yaml",
                           "--set models.abacus-xs.path=" + scratch.path().string());
  const auto all = nlohmann::ordered_json::parse(read_file("tests/data/jinja/bodies.json"));
  int equal = 0;
  for (const auto& one : all["cases"]) {
    if (one["template"] != "qwen3_style.jinja")
      continue;
    auto body = all["bodies"][one["body"].get<std::size_t>()];
    body["max_tokens"] = 3;
    body["return_token_ids"] = true;
    const auto answer = http_client(server.port()).post("/v1/chat/completions", body.dump());
    BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.body);
    const json ids = {{"tokens", answer.json()["prompt_token_ids"]}};
    const auto prompt = http_client(server.port()).post("/detokenize", ids).json()["prompt"];
    BOOST_TEST(prompt.get<std::string>() == one["want"].get<std::string>());
    ++equal;
  }
  BOOST_TEST(equal == 8);
  const auto refused =
      http_client(shared_server().port()).post("/v1/chat/completions", all["bodies"][0].dump());
  BOOST_TEST(refused.status == 400);
  BOOST_TEST(refused.json()["error"]["param"] == "tools");
}
