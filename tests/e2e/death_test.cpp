#include <boost/test/unit_test.hpp>

#include "tests/support/command.hpp"

using namespace tokenrouter::test;

namespace {

/// A long job on three ranks; `signal` goes to the process of rank 2 once it has begun.
command_result run_and_hit(const std::string& signal, const scratch_folder& scratch) {
  std::string prompts;
  for (int i = 0; i < 4000; ++i)
    prompts += "{\"prompt\": \"Maya has 347 stickers.\", \"max_new_tokens\": 400, "
               "\"ignore_eos\": true}\n";
  write_file(scratch.file("in.jsonl"), prompts);
  const std::string pid_file = scratch.file("pid");
  const std::string rank = "if [ \"$OMPI_COMM_WORLD_RANK\" = 2 ]; then echo $$ > " + pid_file +
                           "; fi; exec " + program() +
                           " generate --config configs/cascade/abacus-xs_abacus-s_abacus-m.yaml "
                           "--set system.peer_timeout_ms=1500 --prompts " +
                           scratch.file("in.jsonl") + " --output " + scratch.file("out.jsonl");
  return run_command("( while [ ! -s " + pid_file + " ]; do sleep 0.1; done; sleep 3; kill -" +
                     signal + " $(cat " + pid_file + ") ) & timeout -k 5 60 " + mpirun(3) +
                     "sh -c '" + rank + "'; code=$?; wait; exit $code");
}

} // namespace

BOOST_AUTO_TEST_CASE(a_rank_that_hangs_ends_the_job_with_one_clear_line) {
  const scratch_folder scratch;
  const auto run = run_and_hit("STOP", scratch);
  BOOST_TEST(run.exit_code != 0);
  BOOST_TEST(run.exit_code != 124, "the job hung until it was killed: " + run.output);
  const std::string line = "tokenrouter: rank 2 is lost: no sign of life";
  const auto at = run.output.find(line);
  BOOST_TEST(at != std::string::npos, run.output);
  BOOST_TEST(run.output.find("tokenrouter:", at + 1) == std::string::npos, run.output);
}

BOOST_AUTO_TEST_CASE(a_rank_that_is_killed_ends_the_job) {
  const scratch_folder scratch;
  const auto run = run_and_hit("KILL", scratch);
  BOOST_TEST(run.exit_code != 0);
  BOOST_TEST(run.exit_code != 124, "the job hung until it was killed: " + run.output);
}
