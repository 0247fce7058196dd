#include <boost/test/unit_test.hpp>

#include "runtime/policy/fetch_cost.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_cost_starts_at_what_is_seen_first_and_follows_what_comes) {
  token_cost cost;
  BOOST_TEST(cost.us_per_token() == 0);
  cost.note(3200, 32);
  BOOST_TEST(cost.us_per_token() == 100);
  cost.note(640, 32);
  BOOST_TEST(cost.us_per_token() == 80);
  for (int i = 0; i < 40; ++i)
    cost.note(640, 32);
  BOOST_TEST(cost.us_per_token() < 20.01);
}

BOOST_AUTO_TEST_CASE(kv_is_sent_unless_computing_takes_less_than_half_as_long) {
  BOOST_TEST(worth_sending(20, 10));
  BOOST_TEST(!worth_sending(21, 10));
  BOOST_TEST(worth_sending(1, 10));
  BOOST_TEST(worth_sending(0, 10)); // not known yet
  BOOST_TEST(worth_sending(1000, 0));
}
