#include <boost/test/unit_test.hpp>

#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/e2e/oracle.hpp"
#include "tests/support/command.hpp"

using namespace tokenrouter::test;

namespace {

/// What does not depend on time: id, tokens, who made each, scores, work, for each answer.
std::vector<std::string> sampled_run(int ranks, const std::string& options) {
  const scratch_folder scratch;
  write_oracle_prompts(scratch.file("in.jsonl"));
  const auto run = run_command(
      (ranks > 0 ? mpirun(ranks) : "") + program() +
      " generate --config configs/cascade/abacus-xs_abacus-s_abacus-m.yaml --temperature 1 --seed "
      "7 "
      "--prompts " +
      scratch.file("in.jsonl") + " --output " + scratch.file("out.jsonl") + " " + options);
  BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.output);
  std::vector<std::string> answers;
  std::istringstream lines(read_file(scratch.file("out.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    auto one = nlohmann::json::parse(line);
    one.erase("timing_ms");
    answers.push_back(one.dump());
  }
  BOOST_REQUIRE(answers.size() == 32u);
  return answers;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_sampled_bf16_run_is_the_same_on_every_layout) {
  const auto alone = sampled_run(0, "--concurrency 1");
  const auto spread =
      sampled_run(3, "--concurrency 32 --set prefill_chunk_tokens=9 --set max_batch_rows=5");
  for (std::size_t i = 0; i < alone.size(); ++i)
    BOOST_TEST(alone[i] == spread[i]);
}
