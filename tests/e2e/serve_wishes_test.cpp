#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

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
