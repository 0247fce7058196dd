#include <boost/test/unit_test.hpp>

#include <set>

#include "runtime/core/philox.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_draw_is_a_pure_function_of_seed_stream_position_and_lane) {
  const float first = uniform_draw(1, 2, 3, 4);
  uniform_draw(9, 9, 9, 9);
  BOOST_TEST(uniform_draw(1, 2, 3, 4) == first);
  const std::set<float> others{first,
                               uniform_draw(2, 2, 3, 4),
                               uniform_draw(1, 3, 3, 4),
                               uniform_draw(1, 2, 4, 4),
                               uniform_draw(1, 2, 3, 5),
                               uniform_draw(1ull << 32 | 1, 2, 3, 4)};
  BOOST_TEST(others.size() == 6u);
}

// Known answer of Philox4x32-10 for an all-zero counter and key: first word 0x6627e8d5.
BOOST_AUTO_TEST_CASE(the_generator_is_philox4x32_10) {
  BOOST_TEST(uniform_draw(0, 0, 0, 0) == static_cast<float>(0x6627e8d5u >> 8) / 16777216.0f);
}

BOOST_AUTO_TEST_CASE(draws_are_uniform_enough) {
  double sum = 0;
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    const float u = uniform_draw(42, 1, static_cast<std::uint32_t>(i));
    BOOST_REQUIRE(u >= 0.0f && u < 1.0f);
    sum += u;
  }
  BOOST_TEST(sum / n == 0.5, boost::test_tools::tolerance(0.02));
}
