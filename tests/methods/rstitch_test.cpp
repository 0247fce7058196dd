#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

#include "runtime/methods/rstitch/rstitch.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

toy_job job_of(float small_entropy, float large_entropy) {
  toy_job job;
  job.topology = {{"rstitch_slm", "rstitch_llm"}, {0}};
  job.parameters.threshold = 0.25;
  job.models = {hashing_model(1), hashing_model(2)};
  job.output_tokens_max = 8;
  job.models[0].signals = [=](auto, route_input& in) { in.entropy_normalised = small_entropy; };
  job.models[1].signals = [=](auto, route_input& in) { in.entropy_normalised = large_entropy; };
  return job;
}

route_action small_says(const rstitch_small& role, float entropy, float head = 0) {
  method_state state;
  route_input in;
  in.entropy_normalised = entropy;
  in.entropy_nats = 100 * entropy;
  in.head_score = head;
  return role.route(in, state).action;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_small_model_goes_above_the_threshold_only) {
  const rstitch_small role({1}, 0.25, entropy_unit::normalised, false);
  BOOST_TEST((small_says(role, 0.25f) == route_action::stay));
  BOOST_TEST((small_says(role, 0.2501f) == route_action::go_drop));
  BOOST_TEST((small_says(role, std::nanf("")) == route_action::go_drop));
  const rstitch_small nats({1}, 20, entropy_unit::nats, false);
  BOOST_TEST((small_says(nats, 0.2f) == route_action::stay));
  BOOST_TEST((small_says(nats, 0.21f) == route_action::go_drop));
}

BOOST_AUTO_TEST_CASE(the_large_model_returns_at_the_threshold_and_keeps_its_token) {
  const rstitch_large role({0}, 0.25, entropy_unit::normalised, true);
  method_state state;
  route_input in;
  in.entropy_normalised = 0.25f;
  BOOST_TEST((role.route(in, state).action == route_action::go_keep));
  in.entropy_normalised = 0.2501f;
  BOOST_TEST((role.route(in, state).action == route_action::stay));
  in.entropy_normalised = std::nanf("");
  BOOST_TEST((role.route(in, state).action == route_action::stay));
}

BOOST_AUTO_TEST_CASE(a_small_model_never_sure_and_a_large_one_always_sure_still_end) {
  const auto result = job_of(1, 0).run();
  BOOST_REQUIRE(result.ended);
  BOOST_TEST(result.makers() == std::vector<int>(8, 1), tt::per_element());
}

BOOST_AUTO_TEST_CASE(keep_own_ends_as_well_and_the_small_model_writes_where_the_large_is_sure) {
  toy_job job = job_of(1, 0);
  job.parameters.on_return = "keep_own";
  const auto result = job.run();
  BOOST_REQUIRE(result.ended);
  BOOST_TEST(result.makers() == std::vector<int>(8, 0), tt::per_element());
  // Asked again at every position, for all that it kept its own token at the one before.
  BOOST_TEST(result.steps.size() == 24u);
}

BOOST_AUTO_TEST_CASE(keep_own_asks_again_at_the_next_position_only) {
  toy_job job = job_of(1, 1);
  job.parameters.on_return = "keep_own";
  job.models[1].signals = [](auto sequence, route_input& in) {
    in.entropy_normalised = sequence.size() == 3 ? 0.1f : 0.9f;
  };
  BOOST_TEST(job.run().makers() == (std::vector<int>{1, 1, 0, 1, 1, 1, 1, 1}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(the_large_model_writes_on_until_it_is_sure) {
  toy_job job = job_of(0, 1);
  job.models[0].signals = [](auto sequence, route_input& in) {
    in.entropy_normalised = sequence.size() == 3 ? 0.9f : 0.1f;
  };
  job.models[1].signals = [](auto sequence, route_input& in) {
    in.entropy_normalised = sequence.size() == 5 ? 0.25f : 0.9f;
  };
  BOOST_TEST(job.run().makers() == (std::vector<int>{0, 0, 1, 1, 1, 0, 0, 0}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(the_head_is_consulted_only_where_the_entropy_is_high) {
  const rstitch_small role({1}, 0.25, entropy_unit::normalised, true);
  BOOST_TEST((small_says(role, 0.2f, 1.0f) == route_action::stay));
  BOOST_TEST((small_says(role, 0.3f, 0.5f) == route_action::go_drop));
  BOOST_TEST((small_says(role, 0.3f, 0.49f) == route_action::stay));
  BOOST_TEST((small_says(role, 0.3f, std::nanf("")) == route_action::go_drop));
  BOOST_TEST((small_says(role, std::nanf(""), 0.1f) == route_action::go_drop));
  BOOST_TEST(role.needs().heads == std::vector<std::string>{"rstitch"});
}

BOOST_AUTO_TEST_CASE(units_and_defaults_are_checked) {
  const method_topology topology{{"rstitch_slm", "rstitch_llm"}, {0}};
  method_parameters parameters;
  BOOST_TEST(make_role({1}, topology, parameters).has_value());
  parameters.entropy_unit = "nats";
  BOOST_TEST(make_role({0}, topology, parameters).error().message ==
             "method.threshold: rstitch needs one in nats");
  parameters.entropy_unit = "bits";
  BOOST_TEST(make_role({0}, topology, parameters).error().message ==
             "method.entropy_unit: must be normalised or nats, not 'bits'");
  parameters = {};
  parameters.on_return = "keep_both";
  BOOST_TEST(make_role({1}, topology, parameters).error().message ==
             "method.on_return: must be keep_llm or keep_own, not 'keep_both'");
}
