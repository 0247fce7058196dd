#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"

using namespace tokenrouter::test;
namespace fs = std::filesystem;

namespace {

const fs::path models = fs::absolute("examples/models/abacus");

/// A copy of abacus-xs that a test may break.
fs::path copy_model(const scratch_folder& scratch) {
  const fs::path to = scratch.path() / "model";
  fs::copy(models / "abacus-xs", to, fs::copy_options::recursive);
  return to;
}

std::string single_config(const scratch_folder& scratch, const fs::path& model,
                          const std::string& more = "") {
  write_file(scratch.file("job.yaml"), "system: {entry_model: one, method: single}\n"
                                       "models:\n"
                                       "  one: {path: " +
                                           model.string() + ", scheduler: plain}\n" + more);
  return scratch.file("job.yaml");
}

command_result generate(const std::string& config, const std::string& more = "--prompt hello") {
  return run_command(program() + " generate --config " + config + " " + more);
}

/// The run failed with that code, said so, and did not crash.
void expect_refusal(const command_result& run, int code, const std::string& message_part) {
  BOOST_TEST(run.exit_code == code, run.output);
  BOOST_TEST(run.output.find(message_part) != std::string::npos, run.output);
  BOOST_TEST(run.output.find("broken invariant") == std::string::npos, run.output);
}

} // namespace

BOOST_AUTO_TEST_CASE(missing_weights_are_named) {
  const scratch_folder scratch;
  const auto model = copy_model(scratch);
  fs::remove(model / "model.safetensors");
  expect_refusal(generate(single_config(scratch, model)), 2, "model.safetensors");
}

BOOST_AUTO_TEST_CASE(truncated_weights_are_named) {
  const scratch_folder scratch;
  const auto model = copy_model(scratch);
  const fs::path file = model / "model.safetensors";
  const auto whole = fs::file_size(file);
  for (const auto bytes : {std::uintmax_t{0}, std::uintmax_t{7}, std::uintmax_t{500}, whole - 1}) {
    fs::resize_file(file, bytes);
    expect_refusal(generate(single_config(scratch, model)), 2, "model.safetensors");
  }
}

BOOST_AUTO_TEST_CASE(weights_of_another_shape_are_named_with_both_shapes) {
  const scratch_folder scratch;
  const auto model = copy_model(scratch);
  auto config = nlohmann::json::parse(read_file((model / "config.json").string()));
  config["intermediate_size"] = 512;
  write_file((model / "config.json").string(), config.dump());
  const auto run = generate(single_config(scratch, model));
  expect_refusal(run, 2, "gate_proj");
  BOOST_TEST(run.output.find("512") != std::string::npos, run.output);
  BOOST_TEST(run.output.find("256") != std::string::npos, run.output);
}

BOOST_AUTO_TEST_CASE(an_unknown_key_is_told_with_its_line_and_the_nearest) {
  const scratch_folder scratch;
  const auto config =
      single_config(scratch, models / "abacus-xs", "max_batch_row: 4\nprefil_chunk_tokens: 16\n");
  const auto run = generate(config);
  expect_refusal(run, 2, "job.yaml:4");
  BOOST_TEST(run.output.find("max_batch_rows") != std::string::npos, run.output);
  BOOST_TEST(run.output.find("job.yaml:5") != std::string::npos, run.output);
}

BOOST_AUTO_TEST_CASE(a_pool_that_does_not_fit_is_refused_with_figures) {
  const scratch_folder scratch;
  const auto run = generate(single_config(scratch, models / "abacus-xs"),
                            "--prompt hello --set kv_cache.tokens=4000000000");
  expect_refusal(run, 2, "can't hold weights and the tokens asked for");
}

BOOST_AUTO_TEST_CASE(models_with_different_vocabularies_are_both_named) {
  const scratch_folder scratch;
  const auto model = copy_model(scratch);
  auto words = nlohmann::json::parse(read_file((model / "tokenizer.json").string()));
  auto& vocab = words["model"]["vocab"];
  const int a = vocab["a"], b = vocab["b"];
  vocab["a"] = b;
  vocab["b"] = a;
  write_file((model / "tokenizer.json").string(), words.dump());
  write_file(scratch.file("job.yaml"), "system: {entry_model: one, method: cascade}\n"
                                       "models:\n"
                                       "  one: {path: " +
                                           model.string() +
                                           ", scheduler: cascade}\n"
                                           "  two: {path: " +
                                           (models / "abacus-m").string() +
                                           ", scheduler: cascade}\n"
                                           "method: {thresholds: [0.5]}\n");
  const auto run = generate(scratch.file("job.yaml"));
  expect_refusal(run, 2, "different vocabularies");
  BOOST_TEST(run.output.find("'one' and 'two'") != std::string::npos, run.output);
}

BOOST_AUTO_TEST_CASE(bad_prompts_fail_alone_and_the_others_are_answered) {
  const scratch_folder scratch;
  nlohmann::json long_prompt;
  long_prompt["prompt_token_ids"] = std::vector<int>(2048, 5);
  write_file(scratch.file("in.jsonl"),
             long_prompt.dump() + "\n" +
                 "{\"prompt\": \"caf\xe9 \xff\"}\n"
                 "{\"prompt\": \n"
                 "{\"prompt_token_ids\": [5, 99999]}\n"
                 "{\"prompt_token_ids\": []}\n"
                 "{\"prompt\": \"a\", \"messages\": []}\n"
                 "{\"prompt\": \"a\", \"temperature\": -1}\n"
                 "{\"prompt\": \"a\", \"max_new_tokens\": \"many\"}\n"
                 "{\"messages\": [{\"role\": \"user\"}]}\n"
                 "{\"id\": \"good\", \"prompt\": \"1 + 1 =\", \"max_new_tokens\": 3}\n");
  const auto run =
      generate(single_config(scratch, models / "abacus-xs"),
               "--prompts " + scratch.file("in.jsonl") + " --output " + scratch.file("out.jsonl"));
  BOOST_TEST(run.exit_code == 1, run.output);
  const std::vector<std::string> reasons{"context of model 'one' is 2048",
                                         "not valid UTF-8",
                                         "in.jsonl:3",
                                         "token id 99999",
                                         "empty",
                                         "exactly one of",
                                         "'temperature'",
                                         "'max_new_tokens'",
                                         "'messages'"};
  std::istringstream lines(read_file(scratch.file("out.jsonl")));
  std::string line;
  for (const auto& reason : reasons) {
    BOOST_REQUIRE(std::getline(lines, line));
    const auto one = nlohmann::json::parse(line);
    BOOST_TEST(one["finish_reason"] == "error", line);
    BOOST_TEST(one["error"].get<std::string>().find(reason) != std::string::npos, line);
  }
  BOOST_REQUIRE(std::getline(lines, line));
  BOOST_TEST(nlohmann::json::parse(line)["token_ids"].size() == 3u, line);
}

BOOST_AUTO_TEST_CASE(ranks_that_are_not_there_are_told_and_the_way_out) {
  const scratch_folder scratch;
  write_file(scratch.file("job.yaml"), "system: {entry_model: one, method: single}\n"
                                       "models:\n"
                                       "  one: {path: " +
                                           (models / "abacus-xs").string() +
                                           ", scheduler: plain, ranks: [3]}\n");
  expect_refusal(generate(scratch.file("job.yaml")), 2, "rank 3");
  const auto run = run_command(mpirun(2) + program() + " generate --config " +
                               scratch.file("job.yaml") + " --prompt hello");
  expect_refusal(run, 2, "rank 3");
}

BOOST_AUTO_TEST_CASE(files_that_are_not_there_are_named) {
  const scratch_folder scratch;
  expect_refusal(generate(scratch.file("nothing.yaml")), 2, "nothing.yaml");
  const auto config = single_config(scratch, models / "abacus-xs");
  expect_refusal(generate(config, "--prompts " + scratch.file("nothing.jsonl")), 2,
                 "nothing.jsonl");
  expect_refusal(generate(config, "--prompt a --output " + scratch.file("no/such/out.jsonl")), 2,
                 "out.jsonl");
  expect_refusal(generate(config, ""), 2, "--prompt");
}
