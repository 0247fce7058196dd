#include <boost/test/unit_test.hpp>

#include <cmath>

#include "runtime/methods/citer/citer.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

route_action decide(double threshold, float confidence) {
  method_state state;
  route_input in;
  in.head_score = confidence;
  return citer_small(model_id{1}, "citer", threshold).route(in, state).action;
}

} // namespace

BOOST_AUTO_TEST_CASE(confidence_at_the_threshold_stays_and_below_goes) {
  BOOST_TEST((decide(0.5, 0.5f) == route_action::stay));
  BOOST_TEST((decide(0.5, 0.4999f) == route_action::go_drop));
  BOOST_TEST((decide(0.5, 1.0f) == route_action::stay));
  BOOST_TEST((decide(0.5, std::nanf("")) == route_action::go_drop));
  BOOST_TEST((decide(0.0, 0.0f) == route_action::stay));
}

BOOST_AUTO_TEST_CASE(the_form_of_the_head_is_chosen_by_name) {
  method_parameters parameters;
  const method_topology topology{{"citer_slm", "citer_llm"}, {0}};
  BOOST_TEST(make_role({0}, topology, parameters).value()->needs().heads ==
             std::vector<std::string>{"citer"});
  parameters.head_form = "unfolded";
  BOOST_TEST(make_role({0}, topology, parameters).value()->needs().heads ==
             std::vector<std::string>{"citer_unfolded"});
  parameters.head_form = "flat";
  BOOST_TEST(make_role({0}, topology, parameters).error().message ==
             "method.head_form: must be folded or unfolded, not 'flat'");
}

BOOST_AUTO_TEST_CASE(without_a_threshold_it_is_a_half) {
  toy_job job;
  job.topology = {{"citer_slm", "citer_llm"}, {0}};
  job.models = {hashing_model(1), hashing_model(2)};
  job.output_tokens_max = 4;
  job.models[0].signals = [](auto sequence, route_input& in) {
    in.head_score = sequence.size() == 2 ? 0.49f : 0.5f;
  };
  BOOST_TEST(job.run().makers() == (std::vector<int>{0, 1, 0, 0}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(an_end_that_is_overruled_does_not_end) {
  toy_job job;
  job.topology = {{"citer_slm", "citer_llm"}, {0}};
  job.models = {
      {[](auto) { return 0; },
       [](auto sequence, route_input& in) { in.head_score = sequence.size() < 3 ? 0.1f : 0.9f; }},
      {[](auto) { return 4; }, {}}};
  BOOST_TEST(job.run().tokens() == (std::vector<token_id>{4, 4, 0}), tt::per_element());
}
