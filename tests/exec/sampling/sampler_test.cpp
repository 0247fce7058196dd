#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "runtime/exec/mixture.hpp"
#include "runtime/exec/sampler.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

sampled_token sample(const std::vector<float>& logits, const sampling_params& params,
                     std::uint32_t position = 0, std::uint32_t stream = 1) {
  sampler_scratch scratch;
  return sample_token(logits, params, stream, position, scratch);
}

sampling_params at_temperature(float temperature, std::uint32_t top_k = 0, float top_p = 1,
                               float min_p = 0) {
  return {temperature, top_k, top_p, min_p, 20240607};
}

std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities)
    out.push_back(static_cast<float>(std::log(p)) + 3.0f);
  return out;
}

/// χ² of the observed draws against `expected` probabilities; a draw of an id with probability 0
/// gives infinity.
double chi_square(const std::vector<float>& logits, const sampling_params& params,
                  const std::vector<double>& expected, std::uint32_t draws) {
  std::vector<double> seen(expected.size());
  for (std::uint32_t n = 0; n < draws; ++n)
    seen[static_cast<std::size_t>(sample(logits, params, n).token)] += 1;
  double sum = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == 0 && seen[i] > 0)
      return std::numeric_limits<double>::infinity();
    if (expected[i] > 0)
      sum += std::pow(seen[i] - draws * expected[i], 2) / (draws * expected[i]);
  }
  return sum;
}

std::vector<double> normalised(std::vector<double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights)
    w /= total;
  return weights;
}

} // namespace

BOOST_AUTO_TEST_CASE(greedy_takes_the_largest_logit_and_the_smallest_id_of_a_tie) {
  BOOST_TEST(sample({1, 3, 2}, {}).token == 1);
  BOOST_TEST(sample({1, 3, 3, 3}, {}).token == 1);
  std::vector<float> wide(1000, 0.5f);
  wide[731] = wide[995] = 0.75f;
  BOOST_TEST(sample(wide, {}).token == 731);
}

BOOST_AUTO_TEST_CASE(nan_logits_are_never_chosen) {
  for (const float temperature : {0.0f, 0.3f, 1.0f, 50.0f})
    for (std::uint32_t position = 0; position < 200; ++position) {
      const auto drawn = sample({not_a_number, 1, not_a_number, 1, -infinity},
                                at_temperature(temperature), position);
      BOOST_TEST((drawn.token == 1 || drawn.token == 3));
      BOOST_TEST(drawn.logprob == -std::log(2.0f), tt::tolerance(1e-6f));
    }
}

BOOST_AUTO_TEST_CASE(rows_without_a_finite_logit_still_give_a_token_and_a_number) {
  for (const float temperature : {0.0f, 1.0f}) {
    BOOST_TEST(sample({not_a_number, not_a_number}, at_temperature(temperature)).token == 0);
    const auto masked = sample({-infinity, -infinity}, at_temperature(temperature));
    BOOST_TEST(masked.token == 0);
    BOOST_TEST(masked.logprob == -std::log(2.0f), tt::tolerance(1e-6f));
    const auto hot = sample({1, infinity, 5}, at_temperature(temperature));
    BOOST_TEST(hot.token == 1);
    BOOST_TEST(hot.logprob == 0.0f);
  }
}

BOOST_AUTO_TEST_CASE(logprob_is_of_the_raw_distribution_whatever_the_sampling) {
  const std::vector<double> p{0.1, 0.2, 0.3, 0.4};
  for (std::uint32_t position = 0; position < 50; ++position) {
    const auto drawn = sample(logits_of(p), at_temperature(2.5f, 3, 0.9f), position);
    BOOST_TEST(double{drawn.logprob} == std::log(p[static_cast<std::size_t>(drawn.token)]),
               tt::tolerance(1e-5));
  }
}

// The bound is the 99.9 % quantile of χ² with 4 degrees of freedom, 18.47; seeds are fixed.
BOOST_AUTO_TEST_CASE(draws_follow_the_tempered_distribution) {
  const std::vector<double> p{0.05, 0.4, 0.1, 0.25, 0.2};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    std::vector<double> expected;
    for (const double x : p)
      expected.push_back(std::pow(x, 1.0 / double{temperature}));
    BOOST_TEST_INFO("temperature " << temperature);
    BOOST_TEST(chi_square(logits_of(p), at_temperature(temperature), normalised(expected), 20000) <
               18.47);
  }
}

BOOST_AUTO_TEST_CASE(draws_follow_the_truncated_distribution) {
  struct row {
    const char* name;
    std::uint32_t top_k;
    float top_p, min_p;
    std::vector<double> expected; // unnormalised
  };
  const std::vector<double> p{0.05, 0.4, 0.1, 0.25, 0.2};
  const row rows[] = {
      {"all", 0, 1.0f, 0.0f, p},
      {"top_k 1", 1, 1.0f, 0.0f, {0, 0.4, 0, 0, 0}},
      {"top_k 3", 3, 1.0f, 0.0f, {0, 0.4, 0, 0.25, 0.2}},
      {"top_k beyond the vocabulary", 9, 1.0f, 0.0f, p},
      {"top_p keeps the token that crosses it", 0, 0.5f, 0.0f, {0, 0.4, 0, 0.25, 0}},
      {"top_p 0 keeps one", 0, 0.0f, 0.0f, {0, 0.4, 0, 0, 0}},
      {"top_p 0.9", 0, 0.9f, 0.0f, {0, 0.4, 0.1, 0.25, 0.2}},
      {"min_p relative to the largest", 0, 1.0f, 0.3f, {0, 0.4, 0, 0.25, 0.2}},
      {"min_p 1 keeps one", 0, 1.0f, 1.0f, {0, 0.4, 0, 0, 0}},
      // 0.4 / 0.85 is less than 0.6 of what top_k left, 0.4 / 1.0 would be as well; with 0.45 only
      // the renormalised mass stops at one token.
      {"top_p counts the mass top_k left", 3, 0.45f, 0.0f, {0, 0.4, 0, 0, 0}},
      {"all three", 4, 0.9f, 0.55f, {0, 0.4, 0, 0.25, 0}},
  };
  for (const row& r : rows) {
    BOOST_TEST_INFO(r.name);
    BOOST_TEST(chi_square(logits_of(p), at_temperature(1, r.top_k, r.top_p, r.min_p),
                          normalised(r.expected), 10000) < 18.47);
  }
}

BOOST_AUTO_TEST_CASE(ties_at_the_edge_of_a_truncation_go_to_the_smaller_ids) {
  const std::vector<float> logits(6, 1.0f);
  std::set<token_id> seen;
  for (std::uint32_t position = 0; position < 500; ++position)
    seen.insert(sample(logits, at_temperature(1, 2), position).token);
  BOOST_TEST(seen == (std::set<token_id>{0, 1}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(a_large_flat_vocabulary_is_drawn_from_end_to_end) {
  const std::vector<float> logits(3000, -2.0f);
  double sum = 0;
  token_id highest = 0;
  const std::uint32_t draws = 2000;
  for (std::uint32_t position = 0; position < draws; ++position) {
    const token_id token = sample(logits, at_temperature(1), position).token;
    sum += token;
    highest = std::max(highest, token);
  }
  BOOST_TEST(sum / draws == 1499.5, tt::tolerance(0.05));
  BOOST_TEST(highest > 2900);
}

BOOST_AUTO_TEST_CASE(a_draw_depends_on_seed_stream_and_position_alone) {
  std::vector<float> logits(200);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>(i % 7);
  sampler_scratch used;
  used.candidates.assign(5000, {9.0f, 3});
  std::map<int, std::set<token_id>> varied;
  for (std::uint32_t n = 0; n < 60; ++n) {
    sampling_params params = at_temperature(1.3f, 50, 0.95f);
    const token_id token = sample(logits, params, n).token;
    BOOST_TEST(sample_token(logits, params, 1, n, used).token == token);
    varied[0].insert(token);
    varied[1].insert(sample(logits, params, 7, n).token);
    params.seed = n;
    varied[2].insert(sample(logits, params, 7).token);
  }
  for (const auto& [what, tokens] : varied)
    BOOST_TEST(tokens.size() > 10u);
}

BOOST_AUTO_TEST_CASE(a_bias_changes_what_is_drawn_and_not_its_logprob) {
  const auto logits = logits_of({0.5, 0.3, 0.2});
  sampling_params greedy;
  greedy.biases = {{1, 1.0f}};
  const auto raised = sample(logits, greedy);
  BOOST_TEST(raised.token == 1);
  BOOST_TEST(raised.logprob == static_cast<float>(std::log(0.3)), tt::tolerance(1e-5f));
  greedy.biases = {{0, -0.4f}, {2, -100.0f}, {700, 100.0f}};
  BOOST_TEST(sample(logits, greedy).token == 0); // e^-0.4 · 0.5 > 0.3; 700 is no token
  greedy.biases[0].bias = -0.6f;
  BOOST_TEST(sample(logits, greedy).token == 1);

  sampling_params drawn = at_temperature(1.0f);
  drawn.biases = {{0, -100.0f}, {2, std::log(3.0f)}};
  BOOST_TEST(chi_square(logits, drawn, normalised({0, 0.3, 0.6}), 3000) < 11);
  drawn.top_k = 1; // of the biased logits
  BOOST_TEST(sample(logits, drawn).token == 2);
  drawn.biases = {{0, 0.0f}};
  drawn.top_k = 0;
  for (std::uint32_t n = 0; n < 50; ++n)
    BOOST_TEST(sample(logits, drawn, n).token == sample(logits, at_temperature(1.0f), n).token);
}

BOOST_AUTO_TEST_CASE(a_bias_counts_in_a_mixture_too) {
  const auto logits = logits_of({0.5, 0.3, 0.2});
  const std::vector<float> other{0.0f, 0.2f, 0.8f};
  BOOST_TEST(most_likely_of_mixture(logits, other, 0.5f).token == 2);
  const std::vector<logit_bias> biases{{1, 1.0f}, {2, -1.0f}};
  const auto biased = most_likely_of_mixture(logits, other, 0.5f, biases);
  BOOST_TEST(biased.token == 1);
  BOOST_TEST(biased.logprob == std::log(0.25f), tt::tolerance(1e-4f));
}
