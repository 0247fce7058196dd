#include <boost/test/unit_test.hpp>

#include "tests/actors/rank_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

submit scored(std::uint64_t tag, std::vector<token_id> prompt, std::uint32_t top) {
  submit order;
  order.client_tag = tag;
  order.prompt = std::move(prompt);
  order.spec.max_new_tokens = 6;
  order.spec.ignore_eos = true;
  order.spec.prompt_logprobs = true;
  order.spec.top_logprobs = top;
  return order;
}

std::vector<token_id> ids(const std::vector<scored_token_info>& prompt) {
  std::vector<token_id> out;
  for (const auto& x : prompt)
    out.push_back(x.token);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_prompt_is_told_once_and_before_any_token) {
  rank_bench rank({.roles = {"r2r_slm", "r2r_llm"}});
  std::vector<token_id> prompt;
  for (token_id i = 0; i < 40; ++i)
    prompt.push_back(1 + i % 60);
  // The second time all of it is in the prefix cache, and it is run again to be scored.
  for (const std::uint64_t tag : {1u, 2u}) {
    rank.post(scored(tag, prompt, 3));
    rank.run_until_answered(tag);
    BOOST_REQUIRE(rank.log().done.count(tag) == 1u);
    const auto& told = rank.log().prompts.at(tag);
    BOOST_TEST(ids(told) == prompt, boost::test_tools::per_element());
    BOOST_TEST(std::isnan(told[0].logprob.value));
    for (std::size_t i = 1; i < told.size(); ++i) {
      BOOST_TEST(told[i].logprob.value <= 0);
      BOOST_TEST(told[i].top.size() == 3u);
    }
    for (const auto& x : rank.log().done.at(tag).output)
      BOOST_TEST(x.top.size() == 3u);
  }
  const auto &first = rank.log().prompts.at(1), &second = rank.log().prompts.at(2);
  for (std::size_t i = 1; i < first.size(); ++i)
    BOOST_TEST(first[i].logprob.value == second[i].logprob.value);
  BOOST_TEST(rank.pools_are_whole());
}

BOOST_AUTO_TEST_CASE(nothing_is_told_that_was_not_asked_for) {
  rank_bench rank({.roles = {"r2r_slm", "r2r_llm"}});
  rank.submit(1, {1, 2, 3}, 6);
  rank.run_until_answered(1);
  BOOST_TEST(rank.log().prompts.count(1) == 0u);
  for (const auto& x : rank.log().done.at(1).output)
    BOOST_TEST(x.top.empty());
}

BOOST_AUTO_TEST_CASE(a_request_for_one_model_is_routed_by_nobody) {
  for (const std::uint16_t model : {std::uint16_t{0}, std::uint16_t{1}}) {
    rank_bench rank({.roles = {"r2r_slm", "r2r_llm"}, .threshold = 0});
    submit order;
    order.client_tag = 1;
    order.prompt = {1, 2, 3};
    order.spec.max_new_tokens = 20;
    order.spec.ignore_eos = true;
    order.only_model = model_id{model};
    rank.post(std::move(order));
    rank.run_until_answered(1);
    const auto& done = rank.log().done.at(1);
    BOOST_TEST(done.output.size() == 20u);
    BOOST_TEST(done.handoffs == 0u);
    for (const auto& x : done.output)
      BOOST_TEST(x.model.value == model);
  }
}
