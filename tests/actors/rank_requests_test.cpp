#include <boost/test/unit_test.hpp>

#include <functional>
#include <optional>

#include "tests/actors/rank_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

using tokens = std::vector<token_id>;

tokens output_of(const request_done& done) {
  tokens all;
  for (const auto& x : done.output)
    all.push_back(x.token);
  return all;
}

/// A short prompt of its own for each number.
tokens prompt_of(std::uint64_t n) {
  return {static_cast<token_id>(1 + n % 61), static_cast<token_id>(1 + n / 61 % 61), 5};
}

struct refusal {
  const char* what;
  std::function<void(submit&)> change;
  errc code;
};

const std::vector<refusal> refusals{
    {"an empty prompt", [](submit& x) { x.prompt.clear(); }, errc::invalid_argument},
    {"a negative id",
     [](submit& x) {
       x.prompt = {1, -1, 2};
     },
     errc::invalid_argument},
    {"an id outside the vocabulary",
     [](submit& x) {
       x.prompt = {1, static_cast<token_id>(rank_vocab_tokens)};
     },
     errc::invalid_argument},
    {"nothing to generate", [](submit& x) { x.spec.max_new_tokens = 0; }, errc::invalid_argument},
    {"a prompt that fills the context", [](submit& x) { x.prompt.assign(rank_context_tokens, 1); },
     errc::capacity},
    {"more than the pool holds, less than the context",
     [](submit& x) {
       x.prompt.assign(100, 1);
       x.spec.max_new_tokens = 29; // of 128
     },
     errc::capacity},
};

} // namespace

BOOST_AUTO_TEST_CASE(a_refused_request_is_answered_once_and_leaves_nothing_behind) {
  for (const auto& r : refusals) {
    BOOST_TEST_CONTEXT(r.what) {
      rank_bench rank({.roles = {"r2r_slm", "r2r_llm"}, .pool_blocks = 8});
      submit order;
      order.client_tag = 9;
      order.prompt = {1, 2, 3};
      order.spec.max_new_tokens = 4;
      r.change(order);
      rank.post(std::move(order));
      rank.run_until(1000);
      BOOST_REQUIRE(rank.log().done.count(9) == 1u);
      const auto& done = rank.log().done.at(9);
      BOOST_TEST((done.finish == finish_reason::failed));
      BOOST_TEST((done.failure.code == r.code));
      BOOST_TEST(!done.failure.message.empty());
      BOOST_TEST(done.output.empty());
      BOOST_TEST(done.usage.size() == 2u);
      BOOST_TEST(rank.log().streamed.empty());
      BOOST_TEST(rank.pools_are_whole());
      BOOST_TEST(rank.loop().held() == 0u);

      // Its name is free again, and the next request is the first that was ever admitted.
      rank.submit(10, {1, 2, 3}, 4);
      rank.run_until_answered(2);
      BOOST_REQUIRE(rank.log().done.count(10) == 1u);
      BOOST_TEST((rank.log().done.at(10).request == make_request_id({0}, 1)));
      BOOST_TEST((output_of(rank.log().done.at(10)) == rank.expected({1, 2, 3}, 4)));
      BOOST_TEST(rank.log().answers == 2u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_name_that_is_taken_is_refused_without_touching_its_owner) {
  rank_bench rank;
  rank.submit(1, {1, 2, 3}, 20);
  rank.run_until(50);
  rank.submit(1, {4, 5}, 20);
  rank.run_until_answered(2);
  BOOST_TEST(rank.log().answers == 2u);
  BOOST_TEST(rank.log().streamed.at(1).size() == rank.expected({1, 2, 3}, 20).size());
  BOOST_TEST(rank.pools_are_whole());
}

BOOST_AUTO_TEST_CASE(a_name_is_free_again_after_its_answer) {
  rank_bench rank;
  rank.submit(1, {1, 2, 3}, 5);
  rank.run_until_answered(1);
  const std::size_t tokens_each = rank.expected({1, 2, 3}, 5).size();
  BOOST_TEST(rank.log().streamed.at(1).size() == tokens_each);
  rank.submit(1, {1, 2, 3}, 5);
  rank.run_until(100'000);
  BOOST_TEST(rank.log().answers == 2u);
  BOOST_TEST(rank.log().streamed.at(1).size() == 2 * tokens_each);
}

BOOST_AUTO_TEST_CASE(a_queued_request_that_is_cancelled_leaves_the_running_one_alone) {
  rank_bench rank({.rows_max = 1, .eos_odds = 0});
  rank.submit(1, {1, 2, 3}, 30);
  rank.submit(2, {4, 5, 6}, 30);
  rank.submit(3, {7, 8}, 30);
  rank.run_until(100);
  BOOST_TEST(rank.log().streamed.count(1) == 1u);
  BOOST_TEST(rank.log().streamed.count(2) == 0u); // queued
  rank.cancel(2);
  rank.run_until(101);
  BOOST_REQUIRE(rank.log().done.count(2) == 1u); // at once, not when its turn comes
  const auto& done = rank.log().done.at(2);
  BOOST_TEST((done.finish == finish_reason::cancelled));
  BOOST_TEST(done.output.empty());
  BOOST_TEST(done.usage.at(0).computed_tokens == 0u);
  rank.run_until_answered(3);
  BOOST_TEST((output_of(rank.log().done.at(1)) == rank.expected({1, 2, 3}, 30)));
  BOOST_TEST((output_of(rank.log().done.at(3)) == rank.expected({7, 8}, 30)));
  BOOST_TEST(rank.log().answers == 3u);
  BOOST_TEST(rank.pools_are_whole());
}

BOOST_AUTO_TEST_CASE(a_cancel_at_any_moment_ends_one_request_and_no_other) {
  std::size_t cut = 0, whole = 0;
  for (std::uint64_t cancel_us = 1; cancel_us < 600; cancel_us += 7) {
    rank_bench rank({.roles = {"r2r_slm", "r2r_llm"}, .rows_max = 2, .eos_odds = 0});
    rank.submit(1, {1, 2, 3}, 12);
    rank.submit(2, {4, 5, 6, 7}, 12);
    rank.run_until(cancel_us);
    rank.cancel(1);
    rank.run_until_answered(2);
    BOOST_REQUIRE(rank.log().answers == 2u);
    const auto& done = rank.log().done.at(1);
    const auto all = rank.expected({1, 2, 3}, 12), got = output_of(done);
    BOOST_REQUIRE(got.size() <= all.size());
    BOOST_TEST(std::equal(got.begin(), got.end(), all.begin()));
    const bool cancelled = done.finish == finish_reason::cancelled;
    BOOST_TEST((cancelled || got == all));
    ++(cancelled ? cut : whole);
    BOOST_TEST((output_of(rank.log().done.at(2)) == rank.expected({4, 5, 6, 7}, 12)));
    BOOST_TEST(rank.pools_are_whole());
    BOOST_TEST(rank.loop().held() == 0u);
  }
  // The moments must have been of both kinds.
  BOOST_TEST(cut > 5u);
  BOOST_TEST(whole > 5u);
}

BOOST_AUTO_TEST_CASE(a_request_that_is_cancelled_before_the_job_is_ready_never_runs) {
  rank_bench rank;
  rank.submit(1, {1, 2, 3}, 20);
  rank.submit(2, {4, 5}, 20);
  rank.cancel(1);
  rank.run_until_answered(2);
  BOOST_TEST((rank.log().done.at(1).finish == finish_reason::cancelled));
  BOOST_TEST(rank.log().done.at(1).output.empty());
  BOOST_TEST((output_of(rank.log().done.at(2)) == rank.expected({4, 5}, 20)));
  BOOST_TEST(rank.log().answers == 2u);
}

BOOST_AUTO_TEST_CASE(cancelling_what_is_over_or_was_never_there_does_nothing) {
  rank_bench rank;
  rank.cancel(1);
  rank.submit(1, {1, 2, 3}, 5);
  rank.run_until_answered(1);
  BOOST_TEST((output_of(rank.log().done.at(1)) == rank.expected({1, 2, 3}, 5)));
  rank.cancel(1);
  rank.cancel(77);
  rank.run_until(100'000);
  BOOST_TEST(rank.log().answers == 1u);
}

BOOST_AUTO_TEST_CASE(two_thousand_short_requests_leave_the_pools_as_they_were) {
  constexpr std::uint64_t count = 2000;
  rank_bench rank({.roles = {"r2r_slm", "r2r_llm"}, .pool_blocks = 12, .rows_max = 8});
  std::uint64_t posted = 0;
  for (std::uint64_t us = 10; posted < count; us += 40) {
    for (int i = 0; i < 5; ++i, ++posted)
      rank.submit(posted, prompt_of(posted), 1 + static_cast<std::uint32_t>(posted % 7));
    rank.run_until(us);
  }
  rank.run_until_answered(count);
  BOOST_TEST(rank.log().answers == count);
  BOOST_REQUIRE(rank.log().done.size() == count);
  std::uint64_t handoffs = 0;
  for (const auto& [tag, done] : rank.log().done) {
    const auto expected = rank.expected(prompt_of(tag), 1 + static_cast<std::uint32_t>(tag % 7));
    BOOST_REQUIRE(output_of(done) == expected);
    BOOST_REQUIRE(rank.log().streamed.at(tag).size() == expected.size());
    handoffs += done.handoffs;
  }
  BOOST_TEST(handoffs > count); // both models had their share
  BOOST_TEST(rank.pools_are_whole());
  BOOST_TEST(rank.loop().held() == 0u);
  rank.shut_down();
  BOOST_TEST(rank.running_actors() == 0u);
}
