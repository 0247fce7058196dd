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

namespace {

/// A job on three ranks that may lose some: reference on `reference_ranks`. `hit`: shell text that
/// gets the process of rank 2 in $victim once there are answers; empty: nothing befalls it.
command_result run_degraded(const std::string& reference_ranks, const std::string& hit,
                            const scratch_folder& scratch, const std::string& output) {
  std::string prompts;
  for (int i = 0; i < 300; ++i)
    prompts += "{\"prompt\": \"Maya has " + std::to_string(340 + i) +
               " stickers.\", \"max_new_tokens\": 200, \"ignore_eos\": true}\n";
  write_file(scratch.file("in.jsonl"), prompts);
  const std::string pid_file = scratch.file(output + ".pid");
  const std::string rank =
      "if [ \"$OMPI_COMM_WORLD_RANK\" = 2 ]; then echo $$ > " + pid_file + "; fi; exec " +
      program() +
      " generate --config configs/r2r/abacus-xs_abacus-m.yaml --set models.abacus-xs.ranks=[0] "
      "--set models.abacus-m.ranks=" +
      reference_ranks +
      " --set system.peer_timeout_ms=1500 --set system.on_peer_loss=degrade --prompts " +
      scratch.file("in.jsonl") + " --output " + scratch.file(output);
  const std::string run =
      "timeout -k 5 120 " + mpirun(3) + "--enable-recovery sh -c '" + rank + "'";
  if (hit.empty())
    return run_command(run);
  const std::string answers = scratch.file(output);
  return run_command("rm -f " + pid_file + " " + answers + "; ( n=0; while [ ! -s " + answers +
                     " ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done; victim=$(cat " +
                     pid_file + "); " + hit + " ) & " + run + "; code=$?; wait; exit $code");
}

/// The answers' tokens, line by line.
std::string tokens_of(const std::string& path) {
  std::string all, text = read_file(path);
  for (std::size_t at = 0; (at = text.find("\"token_ids\":[", at)) != std::string::npos; ++at)
    all += text.substr(at, text.find(']', at) - at) + "\n";
  return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_job_that_may_degrade_answers_as_if_no_replica_had_been_lost) {
  const scratch_folder scratch;
  const auto whole = run_degraded("[1,2]", "", scratch, "whole.jsonl");
  BOOST_REQUIRE(whole.exit_code == 0);
  const std::string expected = tokens_of(scratch.file("whole.jsonl"));
  BOOST_TEST(expected.size() > 300u * 200u);
  // A stopped process is only gone for mpirun once it is killed.
  for (const std::string hit :
       {"kill -KILL $victim", "kill -STOP $victim; sleep 30; kill -KILL $victim"}) {
    const auto run = run_degraded("[1,2]", hit, scratch, "hit.jsonl");
    BOOST_TEST(run.exit_code == 0, run.output);
    BOOST_TEST(run.output.find("tokenrouter: rank 2 is lost: no sign of life") != std::string::npos,
               run.output);
    BOOST_TEST(run.output.find("'abacus-m' has 1 replica left") != std::string::npos, run.output);
    BOOST_TEST((tokens_of(scratch.file("hit.jsonl")) == expected));
  }
}

BOOST_AUTO_TEST_CASE(answers_are_finished_by_the_model_that_is_left) {
  const scratch_folder scratch;
  const auto run = run_degraded("[2]", "kill -KILL $victim", scratch, "out.jsonl");
  BOOST_TEST(run.exit_code == 0, run.output);
  BOOST_TEST(run.output.find("'abacus-m' is out of service") != std::string::npos, run.output);
  const std::string out = read_file(scratch.file("out.jsonl"));
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = out.find("\"finish_reason\":\"length\"", at)) != std::string::npos;
       ++at)
    ++ends;
  BOOST_TEST(ends == 300u);
}
