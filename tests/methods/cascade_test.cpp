#include <boost/test/unit_test.hpp>

#include <cmath>

#include "runtime/methods/cascade/cascade.hpp"

using namespace tokenrouter;

namespace {

constexpr model_id first{0}, middle{1}, last{2};

route_decision decide(const cascade_stage& stage, float entropy) {
  method_state state;
  route_input in;
  in.entropy_nats = entropy;
  return stage.route(in, state);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_stage_passes_on_only_above_its_threshold) {
  const cascade_stage stage(first, first, middle, 0.5);
  BOOST_TEST((decide(stage, 0.5f).action == route_action::stay));
  BOOST_TEST((decide(stage, 0.51f).action == route_action::go_drop));
  BOOST_TEST(decide(stage, 0.51f).target.value == middle.value);
  BOOST_TEST((decide(stage, std::nanf("")).action == route_action::go_drop));
}

BOOST_AUTO_TEST_CASE(a_later_stage_that_commits_hands_back_to_the_first) {
  const cascade_stage stage(middle, first, last, 0.5);
  BOOST_TEST((decide(stage, 0.1f).action == route_action::go_keep));
  BOOST_TEST(decide(stage, 0.1f).target.value == first.value);
  BOOST_TEST((decide(stage, 0.9f).action == route_action::go_drop));
  BOOST_TEST(decide(stage, 0.9f).target.value == last.value);
}

BOOST_AUTO_TEST_CASE(the_last_stage_always_commits) {
  const cascade_stage stage(last, first, std::nullopt, 0.0);
  BOOST_TEST((decide(stage, 99.0f).action == route_action::go_keep));
  BOOST_TEST(std::isnan(decide(stage, 99.0f).score));
  BOOST_TEST(stage.needs().signals == 0u);
}
