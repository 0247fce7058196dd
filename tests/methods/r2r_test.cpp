#include <boost/test/unit_test.hpp>

#include <cmath>

#include "runtime/methods/r2r/r2r.hpp"

using namespace tokenrouter;

namespace {

constexpr model_id large{1};

route_action decide(r2r_strategy strategy, double threshold, float score, float entropy) {
  method_state state;
  route_input in;
  in.head_score = score;
  in.entropy_nats = entropy;
  return r2r_small(large, strategy, threshold).route(in, state).action;
}

} // namespace

BOOST_AUTO_TEST_CASE(neural_goes_at_or_above_the_threshold_and_for_nan) {
  struct row {
    float score;
    route_action action;
  };
  for (const auto& [score, action] :
       {row{0.0f, route_action::stay}, row{0.2499f, route_action::stay},
        row{0.25f, route_action::go_drop}, row{1.0f, route_action::go_drop},
        row{std::nanf(""), route_action::go_drop}})
    BOOST_TEST((decide(r2r_strategy::neural, 0.25, score, 99.0f) == action), score);
}

BOOST_AUTO_TEST_CASE(entropy_goes_at_or_above_the_threshold_and_for_nan) {
  BOOST_TEST((decide(r2r_strategy::entropy, 0.5, 9.0f, 0.4999f) == route_action::stay));
  BOOST_TEST((decide(r2r_strategy::entropy, 0.5, 0.0f, 0.5f) == route_action::go_drop));
  BOOST_TEST((decide(r2r_strategy::entropy, 0.5, 0.0f, std::nanf("")) == route_action::go_drop));
}

BOOST_AUTO_TEST_CASE(the_large_model_keeps_its_token_and_returns_at_once) {
  method_state state;
  const auto decision = r2r_large(model_id{0}).route({}, state);
  BOOST_TEST((decision.action == route_action::go_keep));
  BOOST_TEST(decision.target.value == 0u);
}

BOOST_AUTO_TEST_CASE(each_strategy_asks_for_the_one_signal_it_reads) {
  const auto neural = r2r_small(large, r2r_strategy::neural, 0.5).needs();
  BOOST_TEST(neural.signals == to_set(signal::heads));
  BOOST_TEST(neural.heads == std::vector<std::string>{"r2r"});
  const auto entropy = r2r_small(large, r2r_strategy::entropy, 0.5).needs();
  BOOST_TEST(entropy.signals == to_set(signal::entropy));
  BOOST_TEST(entropy.heads.empty());
}

BOOST_AUTO_TEST_CASE(a_send_ships_what_the_peer_lacks_and_never_nothing) {
  const r2r_large role(model_id{0});
  BOOST_TEST(role.send(0, 10) == 0u);
  BOOST_TEST(role.send(7, 10) == 7u);
  BOOST_TEST(role.send(10, 10) == 9u);
}
