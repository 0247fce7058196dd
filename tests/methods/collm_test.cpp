#include <boost/test/unit_test.hpp>

#include <cmath>

#include "runtime/methods/collm/collm.hpp"
#include "runtime/methods/collm/threshold_schedule.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

const method_topology pair{{"collm_base", "collm_assist"}, {0}};

method_parameters given(std::string schedule, double threshold, double start = 1.0,
                        std::uint32_t warmup_tokens = 15) {
  method_parameters x;
  x.schedule = std::move(schedule);
  x.threshold = threshold;
  x.schedule_start_threshold = start;
  x.warmup_tokens = warmup_tokens;
  return x;
}

route_decision decide(const method_parameters& parameters, float defer,
                      std::uint32_t output_tokens = 0) {
  method_state state;
  route_input in;
  in.head_score = defer;
  in.prompt_tokens = 3;
  in.position = 3 + output_tokens;
  return make_role({0}, pair, parameters).value()->route(in, state);
}

} // namespace

BOOST_AUTO_TEST_CASE(schedules_have_their_values_at_the_start_the_middle_and_the_end) {
  struct row {
    const char* schedule;
    std::uint32_t output_tokens;
    double threshold;
  };
  const double pi = 3.14159265358979323846;
  for (const auto& [schedule, t, wanted] :
       {row{"constant", 0, 0.2}, row{"constant", 14, 0.2}, row{"constant", 15, 0.2},
        row{"linear", 0, 1.0}, row{"linear", 5, 1.0 - 0.8 / 3},
        row{"linear", 14, 1.0 - 0.8 * 14 / 15}, row{"linear", 15, 0.2}, row{"linear", 99, 0.2},
        row{"exponential", 0, 1.0}, row{"exponential", 5, std::pow(0.2, 1.0 / 3)},
        row{"exponential", 14, std::pow(0.2, 14.0 / 15)}, row{"exponential", 15, 0.2},
        row{"cosine", 0, 1.0}, row{"cosine", 5, 0.2 + 0.4 * 1.5},
        row{"cosine", 14, 0.2 + 0.4 * (1 + std::cos(pi * 14 / 15))}, row{"cosine", 15, 0.2}})
    BOOST_TEST(threshold_schedule::make(given(schedule, 0.2)).value().at(t) == wanted,
               tt::tolerance(1e-12));
  const auto at_once = threshold_schedule::make(given("linear", 0.2, 1.0, 0)).value();
  BOOST_TEST(at_once.at(0) == 0.2);
  const auto to_zero = threshold_schedule::make(given("exponential", 0.0)).value();
  BOOST_TEST(to_zero.at(0) == 1.0);
  BOOST_TEST(to_zero.at(1) == 0.0);
}

BOOST_AUTO_TEST_CASE(deferral_at_the_threshold_stays_and_above_goes) {
  const auto parameters = given("constant", 0.25);
  BOOST_TEST((decide(parameters, 0.25f).action == route_action::stay));
  BOOST_TEST((decide(parameters, 0.2501f).action == route_action::go_drop));
  BOOST_TEST((decide(parameters, std::nanf("")).action == route_action::go_drop));
  BOOST_TEST(decide(parameters, 0.2501f).mix_weight == 0);
}

BOOST_AUTO_TEST_CASE(a_warm_up_from_one_never_defers_the_first_token) {
  for (const char* schedule : {"linear", "exponential", "cosine"}) {
    BOOST_TEST((decide(given(schedule, 0.1), 1.0f).action == route_action::stay), schedule);
    BOOST_TEST((decide(given(schedule, 0.1), 1.0f, 1).action == route_action::go_drop), schedule);
  }
}

BOOST_AUTO_TEST_CASE(composing_sends_the_weight_and_asks_for_the_distribution) {
  auto parameters = given("constant", 0.25);
  parameters.combine = "compose";
  BOOST_TEST(decide(parameters, 0.75f).mix_weight == 0.75f);
  BOOST_TEST(decide(parameters, 0.1f).mix_weight == 0);
  BOOST_TEST(decide(parameters, std::nanf("")).mix_weight == 0);
  const auto needs = make_role({0}, pair, parameters).value()->needs();
  BOOST_TEST(needs.signals == (signal::heads | signal::distribution));
}

BOOST_AUTO_TEST_CASE(the_head_is_its_own_or_a_row_of_the_models) {
  auto parameters = given("constant", 0.25);
  BOOST_TEST(make_role({0}, pair, parameters).value()->needs().heads ==
             std::vector<std::string>{"collm"});
  parameters.defer_token = "<|defer|>";
  BOOST_TEST(make_role({0}, pair, parameters).value()->needs().heads ==
             std::vector<std::string>{"collm_row"});
}

BOOST_AUTO_TEST_CASE(what_can_not_be_made_is_refused) {
  const std::pair<method_parameters, const char*> rows[] = {
      {method_parameters{}, "method.threshold: co-llm needs one"},
      {given("quadratic", 0.5), "unknown schedule 'quadratic'"},
      {given("exponential", 0.5, 0.0), "an exponential schedule starts above 0"},
      {[] {
         auto x = given("constant", 0.5);
         x.combine = "average";
         return x;
       }(),
       "must be defer or compose, not 'average'"}};
  for (const auto& [parameters, part] : rows) {
    const auto refused = make_role({0}, pair, parameters);
    BOOST_REQUIRE(!refused);
    BOOST_TEST(refused.error().message.find(part) != std::string::npos, refused.error().message);
  }
}

BOOST_AUTO_TEST_CASE(the_assistant_writes_single_tokens) {
  toy_job job;
  job.topology = pair;
  job.parameters = given("constant", 0.5);
  job.models = {hashing_model(1), hashing_model(2)};
  job.output_tokens_max = 5;
  job.models[0].signals = [](auto sequence, route_input& in) {
    in.head_score = sequence.size() == 2 || sequence.size() == 3 ? 0.51f : 0.5f;
  };
  BOOST_TEST(job.run().makers() == (std::vector<int>{0, 1, 1, 0, 0}), tt::per_element());
}
