#include <boost/test/unit_test.hpp>

#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/e2e/oracle.hpp"
#include "tests/support/command.hpp"

using namespace tokenrouter::test;

namespace {

using token_lists = std::vector<std::vector<int>>;

/// Greedy token ids for the oracle's prompts, at most 64 each.
token_lists greedy_run(const std::string& config, const std::string& options = {}) {
  const scratch_folder scratch;
  write_oracle_prompts(scratch.file("in.jsonl"));
  const auto run = run_command(program() + " generate --config configs/" + config +
                               ".yaml --concurrency 32 --max-new-tokens 64 --prompts " +
                               scratch.file("in.jsonl") + " --output " + scratch.file("out.jsonl") +
                               " " + options);
  BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.output);
  token_lists out;
  std::istringstream lines(read_file(scratch.file("out.jsonl")));
  for (std::string line; std::getline(lines, line);)
    out.push_back(nlohmann::json::parse(line)["token_ids"].get<std::vector<int>>());
  BOOST_REQUIRE(out.size() == 32u);
  return out;
}

const std::string xs = "examples/models/abacus/abacus-xs";

} // namespace

// The strongest check that no position is lost, doubled or computed from the wrong KV: whatever
// routes between copies of one model must write what the model alone writes.
BOOST_AUTO_TEST_CASE(copies_of_one_model_write_its_own_text_whoever_routes) {
  const auto alone = greedy_run("single/abacus-xs");
  for (const std::string method :
       {"r2r", "r2r-momentum", "r2r-duo_rolling_window", "citer", "co-llm", "rstitch",
        "query-level", "random-token", "random-request", "speculate"})
    BOOST_TEST(
        (greedy_run(method + "/abacus-xs_abacus-m", "--set models.abacus-m.path=" + xs) == alone),
        method);
  for (const std::string options : {"--set method.on_return=keep_own", "--set method.threshold=0"})
    BOOST_TEST((greedy_run("rstitch/abacus-xs_abacus-m",
                           "--set models.abacus-m.path=" + xs + " " + options) == alone),
               options);
  for (const std::string method : {"me", "cascade"})
    BOOST_TEST((greedy_run(method + "/abacus-xs_abacus-s_abacus-m",
                           "--set models.abacus-m.path=" + xs +
                               " --set models.abacus-s.path=" + xs) == alone),
               method);
}

BOOST_AUTO_TEST_CASE(shares_of_nothing_and_of_everything_are_the_models_alone) {
  const auto small = greedy_run("single/abacus-xs"), large = greedy_run("single/abacus-m");
  for (const std::string method : {"random-token", "random-request"}) {
    const std::string config = method + "/abacus-xs_abacus-m";
    BOOST_TEST((greedy_run(config, "--set method.reference_share=0") == small), method);
    BOOST_TEST((greedy_run(config, "--set method.reference_share=1") == large), method);
  }
}
