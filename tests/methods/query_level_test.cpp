#include <boost/test/unit_test.hpp>

#include <cmath>

#include "runtime/methods/query_level/query_level.hpp"
#include "runtime/methods/query_level/query_scores.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

toy_job job_of(std::string source, std::size_t models = 2) {
  toy_job job;
  job.parameters.score_source = std::move(source);
  job.parameters.threshold = 0.5;
  job.topology = {std::vector<std::string>(models, "query_level_routing"), {0}};
  for (std::size_t i = 0; i < models; ++i)
    job.models.push_back(hashing_model(static_cast<std::uint32_t>(i)));
  job.output_tokens_max = 3;
  return job;
}

} // namespace

BOOST_AUTO_TEST_CASE(levels_go_up_at_each_threshold_reached) {
  method_parameters parameters;
  parameters.thresholds = {0.2, 0.6};
  const method_topology topology{std::vector<std::string>(3, "query_level_routing"), {0}};
  const auto levels = query_levels::make(topology, parameters).value();
  const std::pair<double, int> rows[] = {{-1, 0},  {0.1999, 0}, {0.2, 1},         {0.5999, 1},
                                         {0.6, 2}, {7, 2},      {std::nan(""), 2}};
  for (const auto& [score, wanted] : rows)
    BOOST_TEST(levels.of(score).value == wanted, score);
}

BOOST_AUTO_TEST_CASE(the_clients_score_decides_at_admission) {
  toy_job job = job_of("request");
  const std::pair<float, int> rows[] = {{0.4999f, 0}, {0.5f, 1}, {no_score, 1}};
  for (const auto& [score, wanted] : rows) {
    job.request_score = score;
    const auto result = job.run();
    BOOST_TEST(result.makers() == std::vector<int>(3, wanted), tt::per_element());
    // The score is reported with the first token.
    BOOST_TEST((std::isnan(score) || result.steps[0].decision.score == score));
    BOOST_TEST(std::isnan(result.steps[1].decision.score));
  }
}

BOOST_AUTO_TEST_CASE(a_hash_spreads_prompts_and_repeats_itself) {
  toy_job job = job_of("hash");
  int larges = 0;
  for (token_id prompt = 0; prompt < 1000; ++prompt) {
    job.prompt = {1, prompt};
    job.seed = static_cast<std::uint64_t>(prompt);
    const int maker = job.run().makers()[0];
    job.seed += 17;
    BOOST_REQUIRE(job.run().makers()[0] == maker);
    larges += maker;
  }
  BOOST_TEST(std::abs(larges - 500) < 80); // five standard errors
}

BOOST_AUTO_TEST_CASE(the_prompts_entropy_decides_once) {
  toy_job job = job_of("entropy");
  job.parameters.score_tail_tokens = 4;
  const std::vector<float> high{0.9f, 0.9f, 0.1f, 0.1f}, low{0.9f, 0.9f, 0.1f, 0.09f};
  const std::vector<float>* tail = &high;
  job.models[0].signals = [&](auto sequence, route_input& in) {
    in.tail_entropies = sequence.size() == 1 ? std::span(*tail) : std::span(high);
  };
  const auto up = job.run();
  BOOST_TEST(up.makers() == std::vector<int>(3, 1), tt::per_element());
  BOOST_TEST((up.steps[0].decision.action == route_action::go_drop));
  BOOST_TEST(up.steps[0].decision.score == 0.5f);
  tail = &low;
  BOOST_TEST(job.run().makers() == std::vector<int>(3, 0), tt::per_element());
  const std::vector<float> broken{0.1f, std::nanf("")};
  tail = &broken;
  BOOST_TEST(job.run().makers()[0] == 1);
  BOOST_TEST(make_role({0}, job.topology, job.parameters).value()->needs().tail_positions == 4u);
  BOOST_TEST(make_role({1}, job.topology, job.parameters).value()->needs().signals == 0u);
}

BOOST_AUTO_TEST_CASE(one_position_of_entropy_is_the_proposals_own) {
  toy_job job = job_of("entropy");
  job.parameters.score_tail_tokens = 1;
  job.models[0].signals = [](auto, route_input& in) { in.entropy_normalised = 0.5f; };
  BOOST_TEST(job.run().makers()[0] == 1);
}

BOOST_AUTO_TEST_CASE(a_head_at_the_prompts_end_decides_once) {
  toy_job job = job_of("head", 3);
  job.parameters.thresholds = {0.2, 0.6};
  float score = 0;
  job.models[0].signals = [&](auto sequence, route_input& in) {
    in.head_score = sequence.size() == 1 ? score : 1.0f;
  };
  const std::pair<float, int> rows[] = {{0.1f, 0}, {0.25f, 1}, {0.7f, 2}, {std::nanf(""), 2}};
  for (const auto& [value, wanted] : rows) {
    score = value;
    BOOST_TEST(job.run().makers() == std::vector<int>(3, wanted), tt::per_element());
  }
  // CITER's confidence counts the other way round.
  job.parameters.head_kind = "citer";
  score = 0.875f;
  BOOST_TEST(job.run().makers()[0] == 0);
  score = 0.125f;
  BOOST_TEST(job.run().makers()[0] == 2);
  BOOST_TEST(make_role({0}, job.topology, job.parameters).value()->needs().heads ==
             std::vector<std::string>{"citer"});
}

BOOST_AUTO_TEST_CASE(query_levels_that_can_not_be_made_are_refused) {
  struct row {
    std::function<void(toy_job&)> spoil;
    const char* part;
  };
  const row rows[] = {
      {[](toy_job& j) { j.parameters.score_source = "mood"; },
       "must be request, hash, entropy or head, not 'mood'"},
      {[](toy_job& j) { j.parameters.threshold.reset(); }, "needs 1, not 0"},
      {[](toy_job& j) {
         j.parameters.thresholds = {0.1, 0.2};
       },
       "needs 1, not 2"},
      {[](toy_job& j) {
         j = job_of("request", 3);
         j.parameters.thresholds = {0.5, 0.4};
       },
       "must ascend"},
      {[](toy_job& j) { j.topology.entry = {1}; }, "order them smallest first"},
      {[](toy_job& j) { j.parameters.head_kind = "mlp"; }, "must be r2r or citer, not 'mlp'"},
      {[](toy_job& j) { j.parameters.score_tail_tokens = 0; }, "must be at least 1"},
  };
  for (const row& r : rows) {
    toy_job job = job_of("request");
    r.spoil(job);
    const auto refused = make_role({0}, job.topology, job.parameters);
    BOOST_REQUIRE(!refused);
    BOOST_TEST(refused.error().message.find(r.part) != std::string::npos, refused.error().message);
  }
}
