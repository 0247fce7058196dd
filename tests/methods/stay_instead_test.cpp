#include <boost/test/unit_test.hpp>

#include <array>

#include "runtime/methods/stay_instead.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_decision_to_go_where_nobody_is_becomes_one_to_stay) {
  static constexpr std::array<token_id, 2> forced{7, 8};
  struct row {
    route_action action;
    std::size_t forced_tokens;
  };
  for (const row& x : {row{route_action::go_drop, 0}, row{route_action::go_tentative, 0},
                       row{route_action::go_keep, 2}}) {
    route_decision decision;
    decision.action = x.action;
    decision.target = {1};
    decision.score = 0.5f;
    decision.mix_weight = 0.25f;
    decision.forced = forced;
    BOOST_TEST(goes(decision));
    const auto out = stay_instead(decision);
    BOOST_TEST(!goes(out));
    BOOST_TEST((out.action == route_action::stay)); // all that is tentative is committed
    BOOST_TEST(out.score == 0.5f);
    BOOST_TEST(out.mix_weight == 0.0f);
    BOOST_TEST(out.forced.size() == x.forced_tokens);
  }
}
