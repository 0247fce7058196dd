#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

#include "runtime/methods/random/per_request_random.hpp"
#include "runtime/methods/random/random_routing.hpp"
#include "runtime/methods/random/route_draw.hpp"
#include "runtime/methods/random/weighted_choice.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

toy_job job_of(std::string mode, std::size_t models) {
  toy_job job;
  job.parameters.random_mode = std::move(mode);
  job.topology = {std::vector<std::string>(models, "random_routing"), {0}};
  for (std::size_t i = 0; i < models; ++i)
    job.models.push_back(hashing_model(static_cast<std::uint32_t>(i)));
  return job;
}

/// Pearson's statistic of `counts` against `weights` (which sum to 1).
double chi_square(const std::vector<std::size_t>& counts, const std::vector<double>& weights) {
  double total = 0, out = 0;
  for (const std::size_t count : counts)
    total += static_cast<double>(count);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double wanted = total * weights[i];
    out += (static_cast<double>(counts[i]) - wanted) * (static_cast<double>(counts[i]) - wanted) /
           wanted;
  }
  return out;
}

constexpr double chi_square_2_001 = 13.82; ///< two degrees of freedom, probability 0.001

} // namespace

BOOST_AUTO_TEST_CASE(a_choice_splits_the_unit_interval_by_weight) {
  const auto choice = weighted_choice::make(std::vector<double>{2, 0, 1, 1}, 4).value();
  const std::pair<double, std::size_t> rows[] = {{0, 0},    {0.49999, 0}, {0.5, 2}, {0.74999, 2},
                                                 {0.75, 3}, {0.99999, 3}, {1.0, 3}};
  for (const auto& [drawn, wanted] : rows)
    BOOST_TEST(choice.at(drawn) == wanted, drawn);
  const auto last_empty = weighted_choice::make(std::vector<double>{1, 0}, 2).value();
  BOOST_TEST(last_empty.at(1.0) == 0u);
}

BOOST_AUTO_TEST_CASE(faulty_weights_are_refused) {
  const std::vector<double> faulty[] = {
      {1}, {1, -0.1}, {0, 0}, {1, std::nan("")}, {1, std::numeric_limits<double>::infinity()}};
  for (const auto& weights : faulty)
    BOOST_TEST(!weighted_choice::make(weights, 2).has_value());
}

BOOST_AUTO_TEST_CASE(an_ensemble_draws_each_position_by_weight_the_first_one_too) {
  toy_job job = job_of("ensemble", 3);
  job.parameters.weights = {5, 3, 2};
  job.output_tokens_max = 6000;
  const auto result = job.run();
  BOOST_REQUIRE(result.ended);
  std::vector<std::size_t> counts(3), after_zero(3);
  const auto makers = result.makers();
  for (std::size_t i = 0; i < makers.size(); ++i) {
    ++counts[static_cast<std::size_t>(makers[i])];
    if (i > 0 && makers[i - 1] == 0)
      ++after_zero[static_cast<std::size_t>(makers[i])];
  }
  BOOST_TEST(chi_square(counts, {0.5, 0.3, 0.2}) < chi_square_2_001);
  BOOST_TEST(chi_square(after_zero, {0.5, 0.3, 0.2}) < chi_square_2_001); // draws are independent
  BOOST_TEST(result.steps.size() == 6000u);                               // nothing is dropped

  std::vector<std::size_t> firsts(3);
  job.output_tokens_max = 1;
  for (job.seed = 0; job.seed < 3000; ++job.seed)
    ++firsts[static_cast<std::size_t>(job.run().makers()[0])];
  BOOST_TEST(chi_square(firsts, {0.5, 0.3, 0.2}) < chi_square_2_001);
}

BOOST_AUTO_TEST_CASE(an_ensembles_schedule_depends_on_seed_and_position_alone) {
  toy_job job = job_of("ensemble", 3);
  job.parameters.weights = {0.5, 0.3, 0.2};
  const auto once = job.run().makers();
  job.models = {hashing_model(7), hashing_model(8), hashing_model(9)};
  BOOST_TEST(job.run().makers() == once, tt::per_element());
  job.seed = 2;
  BOOST_TEST((job.run().makers() != once));
}

BOOST_AUTO_TEST_CASE(the_draw_of_a_position_says_who_makes_it) {
  toy_job job = job_of("ensemble", 3);
  job.parameters.weights = {0.5, 0.3, 0.2};
  job.prompt = {1, 2, 3};
  const auto makers = job.run().makers();
  for (std::uint32_t i = 0; i < makers.size(); ++i) {
    const float drawn = route_draw(job.seed, 3 + i);
    BOOST_TEST(makers[i] == (drawn < 0.5f ? 0 : drawn < 0.8f ? 1 : 2), i);
  }
}

BOOST_AUTO_TEST_CASE(shares_of_none_and_all_are_the_models_alone) {
  for (const char* mode : {"r2r", "markov"})
    for (const int only : {0, 1}) {
      toy_job job = job_of(mode, 2);
      job.parameters.reference_share = only;
      job.parameters.small_to_large_share = only;
      job.parameters.large_to_small_share = 0;
      job.output_tokens_max = 30;
      const auto makers = job.run().makers();
      BOOST_TEST((makers.front() == only || mode == std::string("markov")));
      for (std::size_t i = 1; i < makers.size(); ++i)
        BOOST_TEST(makers[i] == only, mode << " at " << i);
    }
}

BOOST_AUTO_TEST_CASE(modes_reach_their_shares) {
  toy_job job = job_of("r2r", 2);
  job.parameters.reference_share = 0.35;
  job.output_tokens_max = 4000;
  const double five_sigma = 5 * std::sqrt(0.35 * 0.65 / 4000);
  BOOST_TEST(std::abs(job.run().share_of({1}) - 0.35) < five_sigma);
  job.parameters.random_mode = "markov";
  job.parameters.small_to_large_share = 0.1;
  job.parameters.large_to_small_share = 0.3;
  // Stationary: 0.1 / (0.1 + 0.3); neighbours correlate by 0.6, so the variance is four times that
  // of independent draws.
  BOOST_TEST(std::abs(job.run().share_of({1}) - 0.25) < 5 * std::sqrt(4 * 0.25 * 0.75 / 4000));
}

BOOST_AUTO_TEST_CASE(a_request_is_drawn_once_and_stays) {
  toy_job job = job_of("", 2);
  job.topology.roles = {"per_request_random_routing", "per_request_random_routing"};
  job.parameters.reference_share = 0.3;
  job.output_tokens_max = 4;
  int larges = 0;
  for (job.seed = 0; job.seed < 3000; ++job.seed) {
    const auto makers = job.run().makers();
    BOOST_REQUIRE(makers == std::vector<int>(4, makers[0]));
    larges += makers[0];
  }
  BOOST_TEST(std::abs(larges - 900) < 5 * std::sqrt(3000 * 0.3 * 0.7));
  // The share is the other model's, wherever the entry stands.
  job.topology.entry = {1};
  job.parameters.reference_share = 1;
  BOOST_TEST(job.run().makers()[0] == 0);
}

BOOST_AUTO_TEST_CASE(a_request_may_be_drawn_over_many_models) {
  toy_job job = job_of("", 3);
  job.topology.roles.assign(3, "per_request_random_routing");
  job.parameters.weights = {0.2, 0.3, 0.5};
  job.output_tokens_max = 1;
  std::vector<std::size_t> counts(3);
  for (job.seed = 0; job.seed < 3000; ++job.seed)
    ++counts[static_cast<std::size_t>(job.run().makers()[0])];
  BOOST_TEST(chi_square(counts, job.parameters.weights) < chi_square_2_001);
}

BOOST_AUTO_TEST_CASE(random_roles_that_can_not_be_made_are_refused) {
  method_parameters parameters;
  const method_topology three{std::vector<std::string>(3, "random_routing"), {0}};
  BOOST_TEST(!make_role({0}, three, parameters).has_value());
  parameters.random_mode = "ensemble";
  BOOST_TEST(!make_role({0}, three, parameters).has_value());
  BOOST_TEST(!make_entry(three, parameters).has_value());
  parameters.random_mode = "poisson";
  BOOST_TEST(make_role({0}, three, parameters).error().message ==
             "method.random_mode: must be r2r, markov or ensemble, not 'poisson'");
  const method_topology requests{std::vector<std::string>(3, "per_request_random_routing"), {0}};
  BOOST_TEST(make_entry(requests, {}).error().message ==
             "method.weights: needs one for each model where there are not two");
}

BOOST_AUTO_TEST_CASE(a_draw_repeats_itself) {
  BOOST_TEST(route_draw(3, 4) == route_draw(3, 4));
  BOOST_TEST(route_draw(3, 4) != route_draw(3, 5));
  BOOST_TEST(route_draw(3, 4) != route_draw(4, 4));
}
