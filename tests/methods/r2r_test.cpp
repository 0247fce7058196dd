#include <boost/test/unit_test.hpp>

#include <cmath>

#include "runtime/methods/plain/single_token.hpp"
#include "runtime/methods/r2r/r2r.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

constexpr model_id large{1};

toy_job entropy_job() {
  toy_job job;
  job.topology = {{"r2r_slm", "r2r_llm"}, {0}};
  job.parameters.switching_strategy = "entropy";
  job.parameters.threshold = 0.5;
  job.models = {hashing_model(1), hashing_model(2)};
  return job;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_large_model_keeps_its_token_and_returns_at_once) {
  method_state state;
  const auto decision = single_token_role(model_id{0}).route({}, state);
  BOOST_TEST((decision.action == route_action::go_keep));
  BOOST_TEST(decision.target.value == 0u);
}

BOOST_AUTO_TEST_CASE(a_send_ships_what_the_peer_lacks_and_never_nothing) {
  const single_token_role role(model_id{0});
  BOOST_TEST(role.send(0, 10) == 0u);
  BOOST_TEST(role.send(7, 10) == 7u);
  BOOST_TEST(role.send(10, 10) == 9u);
}

BOOST_AUTO_TEST_CASE(hard_positions_are_written_by_the_large_model_and_no_other) {
  toy_job job = entropy_job();
  job.models[0].signals = [](auto sequence, route_input& in) {
    in.entropy_nats = sequence.size() % 3 == 0 ? 0.5f : 0.4999f;
  };
  const auto result = job.run();
  BOOST_REQUIRE(result.ended);
  std::vector<token_id> sequence = job.prompt;
  for (const made_token& made : result.output) {
    const bool hard = sequence.size() % 3 == 0;
    BOOST_TEST(made.model.value == (hard ? 1 : 0));
    BOOST_TEST(made.token == job.models[hard ? 1 : 0].next(sequence));
    sequence.push_back(made.token);
  }
}

BOOST_AUTO_TEST_CASE(an_overruled_end_goes_on_and_the_large_models_end_ends) {
  toy_job job = entropy_job();
  job.models[0] = {
      [](auto) { return 0; },
      [](auto sequence, route_input& in) { in.entropy_nats = sequence.size() < 4 ? 1.0f : 0.0f; }};
  job.models[1].next = [](auto) { return 5; };
  BOOST_TEST(job.run().tokens() == (std::vector<token_id>{5, 5, 5, 0}), tt::per_element());
  job.models[1].next = [](auto) { return 0; };
  const auto result = job.run();
  BOOST_TEST(result.tokens() == (std::vector<token_id>{0}), tt::per_element());
  BOOST_TEST(result.output[0].model.value == large.value);
}

BOOST_AUTO_TEST_CASE(scores_and_targets_are_reported) {
  r2r_small role(large, make_switching_strategy(entropy_job().parameters).value());
  method_state state;
  route_input in;
  in.entropy_nats = 0.75f;
  const auto decision = role.route(in, state);
  BOOST_TEST(decision.score == 0.75f);
  BOOST_TEST(decision.target.value == large.value);
  BOOST_TEST((decision.action == route_action::go_drop));
}
