#include <boost/test/unit_test.hpp>

#include "tests/e2e/oracle.hpp"

using namespace tokenrouter::test;

namespace {

const std::vector<oracle_policy> policies{
    {"greedy-abacus-xs", "single/abacus-xs"},
    {"greedy-abacus-s", "single/abacus-s"},
    {"greedy-abacus-m", "single/abacus-m"},
    {"route-r2r-neural", "r2r/abacus-xs_abacus-m"},
    {"route-r2r-entropy", "r2r-entropy/abacus-xs_abacus-m"},
    {"route-citer", "citer/abacus-xs_abacus-m"},
    {"route-co-llm", "co-llm/abacus-xs_abacus-m"},
    {"route-rstitch-entropy", "rstitch/abacus-xs_abacus-m"},
    {"route-cascade", "cascade/abacus-xs_abacus-s_abacus-m"},
};

void expect_equal(const oracle_layout& layout) {
  for (const auto& policy : policies) {
    int near_ties = 0;
    const auto found = differences(policy, layout, near_ties);
    for (const auto& line : found)
      BOOST_ERROR(policy.name << " on " << layout.ranks << " ranks, concurrency "
                              << layout.concurrency << " " << layout.overrides << ": " << line);
    if (near_ties > 0)
      BOOST_TEST_MESSAGE(policy.name << ": " << near_ties << " prompts part at a near tie");
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(one_process_gives_the_oracles_tokens_one_request_at_a_time) {
  expect_equal({0, 1, ""});
}

BOOST_AUTO_TEST_CASE(one_rank_under_the_launcher_gives_the_oracles_tokens) {
  expect_equal({1, 32, "--set prefill_chunk_tokens=16"});
}

BOOST_AUTO_TEST_CASE(replicas_and_delayed_batches_give_the_oracles_tokens) {
  for (const auto& policy : policies) {
    if (policy.config.find("xs_abacus-m") == std::string::npos)
      continue;
    int near_ties = 0;
    const auto found =
        differences(policy,
                    {3, 32,
                     "--set models.abacus-m.replicas=2 --set models.abacus-xs.replicas=2 "
                     "--set 'models.abacus-m.delayed_batching_threshold=[1,1,2,2,3,3,4]'"},
                    near_ties);
    for (const auto& line : found)
      BOOST_ERROR(policy.name << " with replicas: " << line);
  }
}

BOOST_AUTO_TEST_CASE(two_ranks_give_the_oracles_tokens) {
  expect_equal({2, 7, ""});
}

BOOST_AUTO_TEST_CASE(three_ranks_give_the_oracles_tokens_with_tiny_chunks) {
  expect_equal({3, 32, "--set prefill_chunk_tokens=16"});
}

BOOST_AUTO_TEST_CASE(four_ranks_give_the_oracles_tokens) {
  expect_equal({4, 32, ""});
}

BOOST_AUTO_TEST_CASE(small_batches_give_the_oracles_tokens) {
  expect_equal({2, 32, "--set max_batch_rows=3 --set prefill_chunk_tokens=5"});
}
