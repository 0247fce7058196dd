#include <boost/test/unit_test.hpp>

#include <filesystem>

#include "tests/support/server.hpp"

using namespace tokenrouter::test;
using nlohmann::json;

namespace {

const std::string config = "configs/r2r/abacus-xs_abacus-m.yaml";

test_server& shared_server() {
  static test_server server(2, config);
  return server;
}

} // namespace

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
