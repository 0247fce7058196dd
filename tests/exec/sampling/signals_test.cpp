#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "runtime/exec/signals.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

constexpr float minus_inf = -std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_logits(std::size_t count, unsigned seed, float spread) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> out(count);
  for (float& z : out)
    z = normal(engine);
  return out;
}

/// The definition itself: −Σ p ln p in float64.
double entropy_by_definition(const std::vector<float>& logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float z : logits)
    sum += std::exp(z - largest);
  double nats = 0;
  for (const float z : logits) {
    const double p = std::exp(z - largest) / sum;
    if (p > 0)
      nats -= p * std::log(p);
  }
  return nats;
}

} // namespace

BOOST_AUTO_TEST_CASE(entropy_of_equal_logits_is_the_logarithm_of_their_number) {
  for (const std::size_t count : {2u, 15u, 16u, 17u, 1000u, 1024u, 1025u, 151936u}) {
    const std::vector<float> logits(count, -3.5f);
    const entropy_value h = entropy(logits);
    BOOST_TEST(h.nats == std::log(static_cast<float>(count)), tt::tolerance(1e-6f));
    BOOST_TEST(h.normalised == 1.0f, tt::tolerance(1e-6f));
  }
}

BOOST_AUTO_TEST_CASE(entropy_of_one_live_logit_is_zero_and_not_nan) {
  for (const std::size_t live : {0u, 15u, 16u, 99u}) {
    std::vector<float> logits(100, minus_inf);
    logits[live] = 12.0f;
    BOOST_TEST(entropy(logits).nats == 0.0f);
    BOOST_TEST(entropy(logits).normalised == 0.0f);
  }
  BOOST_TEST(entropy(std::vector<float>{4.0f}).normalised == 0.0f);
}

BOOST_AUTO_TEST_CASE(entropy_skips_masked_entries) {
  std::vector<float> logits(1000, minus_inf);
  std::fill_n(logits.begin() + 7, 8, 1.0f);
  BOOST_TEST(entropy(logits).nats == std::log(8.0f), tt::tolerance(1e-6f));
}

BOOST_AUTO_TEST_CASE(entropy_stays_finite_over_a_spread_of_ten_thousand) {
  const std::vector<float> logits{1e4f, 0.0f, -1e4f, 1e4f};
  BOOST_TEST(entropy(logits).nats == std::log(2.0f), tt::tolerance(1e-6f));
}

BOOST_AUTO_TEST_CASE(entropy_agrees_with_its_definition) {
  for (const float spread : {0.01f, 0.5f, 3.0f, 20.0f, 90.0f})
    for (const std::size_t count : {3u, 64u, 1019u, 5000u}) {
      const auto logits = random_logits(count, 7u + static_cast<unsigned>(count), spread);
      const double expected = entropy_by_definition(logits);
      BOOST_TEST_INFO("spread " << spread << ", " << count << " logits");
      BOOST_TEST(std::abs(double{entropy(logits).nats} - expected) < 2e-6 * (1 + expected));
    }
}

BOOST_AUTO_TEST_CASE(a_nan_logit_makes_entropy_and_top_signals_nan) {
  for (const std::size_t at : {0u, 40u, 49u}) {
    auto logits = random_logits(50, 1, 1.0f);
    logits[at] = not_a_number;
    std::vector<float> scratch;
    step_row_output out;
    fill_signals(logits, signal::entropy | signal::top_entropy | to_set(signal::evidence), scratch,
                 out);
    BOOST_TEST(std::isnan(out.entropy_nats));
    BOOST_TEST(std::isnan(out.entropy_normalised));
    BOOST_TEST(std::isnan(out.entropy_top20_nats));
    BOOST_TEST(std::isnan(out.aleatoric));
    BOOST_TEST(std::isnan(out.epistemic));
  }
}

BOOST_AUTO_TEST_CASE(top_entropy_renormalises_over_the_twenty_largest) {
  std::vector<float> scratch;
  step_row_output out;
  fill_signals(std::vector<float>(500, 2.0f), to_set(signal::top_entropy), scratch, out);
  BOOST_TEST(out.entropy_top20_nats == std::log(20.0f), tt::tolerance(1e-6f));
  BOOST_TEST(out.entropy_nats == 0.0f); // not asked for

  auto logits = random_logits(2000, 3, 4.0f);
  fill_signals(logits, to_set(signal::top_entropy), scratch, out);
  std::ranges::sort(logits, std::greater<>());
  logits.resize(20);
  BOOST_TEST(double{out.entropy_top20_nats} == entropy_by_definition(logits), tt::tolerance(1e-5));
}

BOOST_AUTO_TEST_CASE(evidence_has_its_worked_values) {
  struct row {
    std::vector<float> logits;
    float aleatoric, epistemic;
  };
  const row rows[] = {
      {std::vector<float>(10, 10.0f), 2.25841f, 10.0f / 110},
      {std::vector<float>(10, 20.0f), 2.28029f, 10.0f / 210},
      {std::vector<float>(10, 30.0f), 2.28768f, 10.0f / 310},
      {{30, 22, 20, 19, 18, 18, 17, 17, 16, 16}, 2.26031f, 0.049261f},
      {{24, 23.5f, 23, 22.8f, 22.5f, 22.4f, 22.2f, 22, 21.9f, 21.8f}, 2.28239f, 0.042355f},
  };
  for (const row& r : rows) {
    const evidence_value e = evidence(r.logits);
    BOOST_TEST(e.aleatoric == r.aleatoric, tt::tolerance(1e-5f));
    BOOST_TEST(e.epistemic == r.epistemic, tt::tolerance(2e-5f));
  }
}

BOOST_AUTO_TEST_CASE(evidence_clamps_logits_that_are_not_positive) {
  const std::vector<float> negative{5, -1, -1, -2, -3, -1000, minus_inf};
  const std::vector<float> clamped{5, 1e-6f, 1e-6f, 1e-6f, 1e-6f, 1e-6f, 1e-6f};
  BOOST_TEST(evidence(negative).aleatoric == evidence(clamped).aleatoric);
  BOOST_TEST(evidence(negative).epistemic == evidence(clamped).epistemic);
}

BOOST_AUTO_TEST_CASE(evidence_reads_the_ten_largest_logits_only) {
  std::vector<float> logits(300, -7.0f);
  for (int i = 0; i < 10; ++i)
    logits[static_cast<std::size_t>(i * 30)] = 20.0f;
  std::vector<float> scratch;
  step_row_output out;
  fill_signals(logits, signal::evidence | signal::top_entropy, scratch, out);
  BOOST_TEST(out.aleatoric == 2.28029f, tt::tolerance(1e-5f));
}

BOOST_AUTO_TEST_CASE(top_logits_equal_the_head_of_a_full_sort) {
  std::vector<float> out;
  for (const std::size_t count : {1u, 99u, 100u, 101u, 1024u, 40000u})
    for (const std::size_t k : {1u, 10u, 20u, 100u, 128u}) {
      auto logits = random_logits(count, static_cast<unsigned>(count + k), 2.0f);
      logits[count / 2] = logits[0]; // a tie
      top_logits(logits, k, out);
      std::ranges::sort(logits, std::greater<>());
      logits.resize(std::min(k, count));
      BOOST_TEST(out == logits, tt::per_element());
    }
  std::vector<float> rising(5000);
  for (std::size_t i = 0; i < rising.size(); ++i)
    rising[i] = static_cast<float>(i);
  top_logits(rising, 3, out);
  BOOST_TEST(out == (std::vector<float>{4999, 4998, 4997}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(top_logits_pad_with_minus_infinity_when_most_are_masked) {
  std::vector<float> logits(40, minus_inf), out;
  logits[3] = 1;
  top_logits(logits, 4, out);
  BOOST_TEST(out == (std::vector<float>{1, minus_inf, minus_inf, minus_inf}), tt::per_element());
  top_logits(logits, 0, out);
  BOOST_TEST(out.empty());
}
