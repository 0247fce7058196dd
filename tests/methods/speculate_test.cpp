#include <boost/test/unit_test.hpp>

#include "runtime/methods/speculate/speculate.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

toy_job job_of(std::uint32_t draft_tokens) {
  toy_job job;
  job.topology = {{"speculate_slm", "speculate_llm"}, {0}};
  job.parameters.draft_tokens = draft_tokens;
  job.models = {hashing_model(1), hashing_model(2)};
  return job;
}

std::vector<token_id> alone(const toy_model& model, const toy_job& like) {
  toy_job job = like;
  job.topology = {{"plain"}, {0}};
  job.models = {model};
  return job.run().tokens();
}

std::uint32_t accepted(const std::vector<token_id>& tentative, const std::vector<token_id>& own) {
  method_state state;
  return speculate_large(model_id{0}).receive({5, tentative, own}, state);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_longest_stretch_of_equal_tokens_is_accepted) {
  BOOST_TEST(accepted({1, 2, 3}, {1, 2, 3, 4}) == 3u);
  BOOST_TEST(accepted({1, 2, 3}, {1, 2, 9, 3}) == 2u);
  BOOST_TEST(accepted({1, 2, 3}, {9, 2, 3, 4}) == 0u);
  BOOST_TEST(accepted({1}, {1, 2}) == 1u);
}

BOOST_AUTO_TEST_CASE(drafts_are_of_their_length_and_end_early_at_an_end) {
  const speculate_small role({1}, 3);
  method_state state;
  struct row {
    std::uint32_t tentative_tokens;
    bool would_finish;
    route_action action;
  };
  for (const auto& [tentative, finish, action] :
       {row{0, false, route_action::stay_tentative}, row{1, false, route_action::stay_tentative},
        row{2, false, route_action::go_tentative}, row{0, true, route_action::go_tentative}}) {
    route_input in;
    in.tentative_tokens = tentative;
    in.would_finish = finish;
    BOOST_TEST((role.route(in, state).action == action));
  }
}

BOOST_AUTO_TEST_CASE(the_output_is_the_large_models_alone) {
  for (const std::uint32_t draft : {1u, 2u, 3u, 7u, 50u})
    for (const std::uint32_t agreement : {0u, 1u, 2u, 5u, 1000u}) {
      toy_job job = job_of(draft);
      // The small model differs at every `agreement`-th position.
      job.models[0].next = [agreement, large = job.models[1].next](auto sequence) {
        const token_id token = large(sequence);
        return agreement == 0 || sequence.size() % agreement == 0 ? token % 9 + 1 : token;
      };
      const auto result = job.run();
      BOOST_REQUIRE(result.ended);
      BOOST_TEST(result.tokens() == alone(job.models[1], job), tt::per_element());
    }
}

BOOST_AUTO_TEST_CASE(an_end_in_a_draft_ends_only_if_the_large_model_agrees) {
  toy_job job = job_of(4);
  job.models[0].next = [](auto) { return 0; };
  BOOST_TEST(job.run().tokens() == alone(job.models[1], job), tt::per_element());
  job.models[1].next = [](auto sequence) { return sequence.size() < 4 ? 5 : 0; };
  BOOST_TEST(job.run().tokens() == (std::vector<token_id>{5, 5, 5, 0}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(accepted_tokens_are_the_small_models) {
  toy_job job = job_of(3);
  job.models[1] = job.models[0];
  job.output_tokens_max = 8;
  BOOST_TEST(job.run().makers() == (std::vector<int>{0, 0, 0, 1, 0, 0, 0, 1}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(both_sides_draw_from_one_stream) {
  const toy_job job = job_of(4);
  for (const model_id model : {model_id{0}, model_id{1}})
    BOOST_TEST(
        make_role(model, job.topology, job.parameters).value()->needs().shares_sampling_stream);
  method_parameters none;
  none.draft_tokens = 0;
  BOOST_TEST(!make_role({0}, job.topology, none).has_value());
}
