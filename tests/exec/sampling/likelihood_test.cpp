#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/exec/likelihood.hpp"

using namespace tokenrouter;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct told {
  float scored = 0;
  std::vector<token_likelihood> likeliest;
};

told tell(const std::vector<float>& logits, token_id scored, std::size_t count) {
  step_row_output out;
  told x;
  x.likeliest.resize(count);
  fill_likelihoods(logits, scored, out, x.likeliest);
  x.scored = out.scored_logprob;
  return x;
}

} // namespace

BOOST_AUTO_TEST_CASE(log_probabilities_are_of_the_softmax_over_all) {
  const std::vector<float> logits = {std::log(1.0f), std::log(5.0f), std::log(3.0f),
                                     std::log(1.0f)};
  for (token_id i = 0; i < 4; ++i)
    BOOST_TEST(std::exp(tell(logits, i, 0).scored) == std::exp(logits[i]) / 10,
               boost::test_tools::tolerance(1e-6f));
  const auto top = tell(logits, -1, 3).likeliest;
  BOOST_TEST(top[0].token == 1);
  BOOST_TEST(top[1].token == 2);
  BOOST_TEST(top[2].token == 0); // the smaller id wins the tie
  BOOST_TEST(std::exp(top[0].logprob) == 0.5f, boost::test_tools::tolerance(1e-6f));
}

BOOST_AUTO_TEST_CASE(the_likeliest_are_what_sorting_gives) {
  std::vector<float> logits(500);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>((i * 7919) % 101) / 7;
  std::vector<token_id> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](token_id a, token_id b) { return logits[a] > logits[b]; });
  for (const std::size_t count : {1u, 2u, 5u, 20u}) {
    const auto top = tell(logits, -1, count).likeliest;
    for (std::size_t i = 0; i < count; ++i)
      BOOST_TEST(top[i].token == order[i]);
  }
}

BOOST_AUTO_TEST_CASE(odd_rows_still_have_an_answer) {
  const auto few = tell({1, 2}, 0, 4).likeliest;
  BOOST_TEST(few[1].token == 0);
  BOOST_TEST(few[2].token == -1);
  BOOST_TEST(tell({1, not_a_number, 0}, 1, 0).scored == -inf);
  BOOST_TEST(tell({1, not_a_number, 0}, -1, 1).likeliest[0].token == 0);
  BOOST_TEST(tell({0, -inf}, 1, 0).scored == -inf);
  BOOST_TEST(tell({0, -inf}, 0, 0).scored == 0);
  BOOST_TEST(tell({inf, 3}, 0, 0).scored == 0);
}

BOOST_AUTO_TEST_CASE(every_answered_position_has_its_own_place) {
  step_input in;
  in.scored_tokens = {7, 8, 9};
  step_row plain, asking, other;
  plain.answered_positions = 1;
  asking.answered_positions = 3;
  asking.likeliest_count = 2;
  asking.scored_positions = 2;
  asking.scored_offset = 1;
  other.answered_positions = 1;
  other.likeliest_count = 4;
  in.rows = {plain, asking, other};
  step_output out;
  out.rows.resize(3);
  out.earlier.resize(2);
  place_likeliest(in, out);
  BOOST_TEST(out.likeliest.size() == 10u);
  BOOST_TEST(out.earlier[0].likeliest_offset == 0u);
  BOOST_TEST(out.earlier[1].likeliest_offset == 2u);
  BOOST_TEST(out.rows[1].likeliest_offset == 4u);
  BOOST_TEST(out.rows[2].likeliest_offset == 6u);
  BOOST_TEST(scored_token(in, asking, 0) == 8);
  BOOST_TEST(scored_token(in, asking, 1) == 9);
  BOOST_TEST(scored_token(in, asking, 2) == -1);
}
