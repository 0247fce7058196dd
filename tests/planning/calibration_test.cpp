#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/planning/calibration.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(the_wanted_share_of_scores_reaches_the_threshold) {
  std::vector<double> scores;
  for (int i = 1; i <= 10; ++i)
    scores.push_back(i / 10.0);
  struct row {
    double share, threshold;
    std::size_t sent_count;
  };
  for (const auto& row : std::vector<row>{{0.3, 0.8, 3},
                                          {0.5, 0.6, 5},
                                          {1, 0.1, 10},
                                          {0.1, 1, 1},
                                          {0.34, 0.8, 3},
                                          {0.36, 0.7, 4}}) {
    const auto got = calibrate_threshold(scores, row.share);
    BOOST_REQUIRE(got);
    BOOST_TEST(got->threshold == row.threshold);
    BOOST_TEST(got->sent_count == row.sent_count);
    BOOST_TEST(got->tied_count == 1u);
    BOOST_TEST(got->sent_share == static_cast<double>(row.sent_count) / 10);
  }
}

BOOST_AUTO_TEST_CASE(no_score_reaches_the_threshold_of_a_share_of_zero) {
  const std::vector<double> scores{0.25, 0.5};
  for (double share : {0.0, 0.2}) {
    const auto got = calibrate_threshold(scores, share);
    BOOST_REQUIRE(got);
    BOOST_TEST(got->threshold > 0.5);
    BOOST_TEST(got->threshold < 0.5000001);
    BOOST_TEST(got->sent_count == 0u);
    BOOST_TEST(got->sent_share == 0);
  }
}

BOOST_AUTO_TEST_CASE(ties_are_sent_whole_and_the_way_around_them_is_told) {
  const std::vector<double> scores{0.1, 0.2, 0.5, 0.5, 0.5, 0.5, 0.8, 0.9};
  const auto got = calibrate_threshold(scores, 0.5);
  BOOST_REQUIRE(got);
  BOOST_TEST(got->threshold == 0.5);
  BOOST_TEST(got->sent_count == 6u);
  BOOST_TEST(got->tied_count == 4u);
  BOOST_TEST(got->sent_share == 0.75);
  BOOST_TEST(got->next_threshold == 0.8);
  BOOST_TEST(got->next_share == 0.25);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_calibrated_is_refused) {
  const std::vector<double> none, one{0.5};
  BOOST_TEST(!calibrate_threshold(none, 0.5).has_value());
  BOOST_TEST(!calibrate_threshold(one, 1.5).has_value());
  BOOST_TEST(!calibrate_threshold(one, -0.1).has_value());
}
