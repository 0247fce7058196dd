#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/core/quantile.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_quantile_is_the_value_at_the_nearest_rank) {
  const std::vector<int> none, one{7}, many{1, 2, 3, 4, 100};
  BOOST_TEST(quantile(std::span<const int>(none), 0.5) == 0);
  BOOST_TEST(quantile(std::span<const int>(one), 0.99) == 7);
  BOOST_TEST(quantile(std::span<const int>(many), 0.0) == 1);
  BOOST_TEST(quantile(std::span<const int>(many), 0.5) == 3);
  BOOST_TEST(quantile(std::span<const int>(many), 0.99) == 100);
}
