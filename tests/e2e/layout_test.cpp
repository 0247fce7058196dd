#include <boost/test/unit_test.hpp>

#include <fstream>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/e2e/oracle.hpp"
#include "tests/support/command.hpp"

using namespace tokenrouter::test;

namespace {

/// What does not depend on time: id, tokens, who made each, scores, work, for each answer.
std::vector<std::string> sampled_run(const std::string& config, int ranks,
                                     const std::string& options) {
  const scratch_folder scratch;
  write_oracle_prompts(scratch.file("in.jsonl"));
  const auto run =
      run_command((ranks > 0 ? mpirun(ranks) : "") + program() + " generate --config configs/" +
                  config + ".yaml --temperature 1 --seed 7 --prompts " + scratch.file("in.jsonl") +
                  " --output " + scratch.file("out.jsonl") + " " + options);
  BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.output);
  std::vector<std::string> answers;
  std::istringstream lines(read_file(scratch.file("out.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    auto one = nlohmann::json::parse(line);
    one.erase("timing_ms");
    // What a prefix cache already has depends on who ended first; what was needed does not.
    for (auto& [model, usage] : one["usage"]["models"].items()) {
      usage["computed_tokens"] =
          usage["computed_tokens"].get<int>() + usage["cached_tokens"].get<int>();
      usage.erase("cached_tokens");
      usage.erase("fetched_tokens");
    }
    answers.push_back(one.dump());
  }
  BOOST_REQUIRE(answers.size() == 32u);
  return answers;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_sampled_bf16_run_is_the_same_on_every_layout) {
  const std::string config = "cascade/abacus-xs_abacus-s_abacus-m";
  const auto alone = sampled_run(config, 0, "--concurrency 1");
  const auto spread = sampled_run(
      config, 3, "--concurrency 32 --set prefill_chunk_tokens=9 --set max_batch_rows=5");
  for (std::size_t i = 0; i < alone.size(); ++i)
    BOOST_TEST(alone[i] == spread[i]);
}

// Replicas, thresholds and the prefix cache decide where and when a token is made, never which.
BOOST_AUTO_TEST_CASE(replicas_and_delays_change_no_token_of_any_method) {
  for (const std::string method :
       {"r2r", "r2r-momentum", "citer", "co-llm", "rstitch", "glimprouter", "query-level",
        "random-token", "random-request", "speculate"}) {
    const std::string config = method + "/abacus-xs_abacus-m";
    const auto alone =
        sampled_run(config, 0, "--concurrency 1 --max-new-tokens 64 --set prefix_cache=false");
    const auto spread =
        sampled_run(config, 3,
                    "--concurrency 32 --max-new-tokens 64 --set models.abacus-m.replicas=2 --set "
                    "models.abacus-xs.replicas=2 --set "
                    "models.abacus-m.delayed_batching_threshold=[1,2,2,3,4,4,5] --set "
                    "models.abacus-xs.delayed_batching_threshold=auto");
    for (std::size_t i = 0; i < alone.size(); ++i)
      BOOST_TEST(alone[i] == spread[i], method << ": " << alone[i] << " " << spread[i]);
  }
}

BOOST_AUTO_TEST_CASE(kv_that_is_given_up_at_handoffs_changes_no_token_and_is_computed_again) {
  const std::string options = "--concurrency 4 --max-new-tokens 48 --set prefix_cache=false";
  const auto kept = sampled_run("r2r/abacus-xs_abacus-m", 0, options);
  const auto dropped =
      sampled_run("r2r/abacus-xs_abacus-m", 2, options + " --set kv_at_handoff=drop");
  int again = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto one = nlohmann::json::parse(kept[i]), two = nlohmann::json::parse(dropped[i]);
    BOOST_TEST(one["token_ids"] == two["token_ids"]);
    for (const auto& [model, usage] : two["usage"]["models"].items()) {
      BOOST_TEST(one["usage"]["models"][model]["recomputed_tokens"] == 0);
      again += usage["recomputed_tokens"].get<int>();
    }
  }
  BOOST_TEST(again > 0);
}

namespace {

/// Questions under eight long instructions in turn, so that every beginning comes again and again.
void write_instructions(const std::string& path) {
  std::ofstream out(path);
  for (int i = 0; i < 48; ++i) {
    const std::string number = std::to_string(i % 8);
    std::string prompt = "Calculator " + number + ".";
    for (int k = 1; k < 10; ++k)
      prompt += " Rule " + number + "-" + std::to_string(k) + ": add digit " + std::to_string(k) +
                " before the next.";
    prompt += " " + std::to_string(37 * i) + "+" + std::to_string(11 * i) + "=";
    out << nlohmann::json{{"prompt", prompt}, {"max_new_tokens", 24}}.dump() << "\n";
  }
}

struct instructed_run {
  std::vector<nlohmann::json> tokens;
  int fetched_tokens = 0;
};

instructed_run run_instructions(const std::string& config, const std::string& launcher,
                                const std::string& options) {
  const scratch_folder scratch;
  write_instructions(scratch.file("in.jsonl"));
  const auto run = run_command(launcher + program() + " generate --config configs/" + config +
                               ".yaml --prompts " + scratch.file("in.jsonl") + " --output " +
                               scratch.file("out.jsonl") + " " + options);
  BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.output);
  instructed_run out;
  std::istringstream lines(read_file(scratch.file("out.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    const auto one = nlohmann::json::parse(line);
    out.tokens.push_back(one["token_ids"]);
    for (const auto& [model, usage] : one["usage"]["models"].items()) {
      const int fetched = usage["fetched_tokens"].get<int>();
      BOOST_TEST(fetched <= usage["cached_tokens"].get<int>());
      out.fetched_tokens += fetched;
    }
  }
  BOOST_REQUIRE(out.tokens.size() == 48u);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(kv_that_replicas_fetch_from_one_another_changes_no_token) {
  for (const std::string config : {"single/abacus-m", "r2r/abacus-xs_abacus-m"}) {
    const bool pair = config.starts_with("r2r");
    const std::string two = std::string(" --set models.abacus-m.replicas=2") +
                            (pair ? " --set models.abacus-xs.replicas=2" : "") +
                            " --concurrency 3 --set prefix_fetch_min_tokens=16";
    const auto alone = run_instructions(config, "", "--concurrency 1 --set prefix_cache=false");
    const auto off = run_instructions(config, mpirun(2), two + " --set prefix_fetch=off");
    const auto sent = run_instructions(config, mpirun(pair ? 3 : 2), two);
    const auto in_place = run_instructions(config, "", two);
    BOOST_TEST(alone.fetched_tokens == 0);
    BOOST_TEST(off.fetched_tokens == 0);
    BOOST_TEST(sent.fetched_tokens > 0);
    BOOST_TEST(in_place.fetched_tokens > 0);
    for (std::size_t i = 0; i < alone.tokens.size(); ++i) {
      BOOST_TEST(sent.tokens[i] == alone.tokens[i]);
      BOOST_TEST(in_place.tokens[i] == alone.tokens[i]);
      BOOST_TEST(off.tokens[i] == alone.tokens[i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(drafts_of_a_small_model_leave_the_large_models_own_text) {
  const scratch_folder scratch;
  const auto tokens_of = [](const std::vector<std::string>& answers) {
    std::vector<nlohmann::json> out;
    for (const auto& text : answers)
      out.push_back(nlohmann::json::parse(text)["token_ids"]);
    return out;
  };
  BOOST_TEST((tokens_of(sampled_run("speculate/abacus-xs_abacus-m", 2, "--concurrency 32")) ==
              tokens_of(sampled_run("single/abacus-m", 0, "--concurrency 32"))));
}
