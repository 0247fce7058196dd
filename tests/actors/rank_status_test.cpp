#include <boost/test/unit_test.hpp>

#include <caf/scoped_actor.hpp>

#include "tests/actors/rank_bench.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

/// What every replica says to one question.
std::map<std::uint16_t, replica_status> ask(rank_bench& rank, std::uint64_t number) {
  caf::scoped_actor self(rank.system());
  self->send(rank.actors().gateway(), ask_status{number});
  rank.loop().run_ready();
  std::map<std::uint16_t, replica_status> out;
  bool more = true;
  while (more)
    self->receive(
        [&](const replica_status& x) {
          BOOST_TEST(x.number == number);
          out.emplace(x.from.model.value, x);
        },
        caf::after(std::chrono::seconds(0)) >> [&] { more = false; });
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(replicas_tell_how_full_they_are_and_how_long_they_have_been_at_a_step) {
  rank_bench rank({.roles = {"r2r_slm", "r2r_llm"}, .step_us = 1000});
  rank.loop().run_ready();
  auto idle = ask(rank, 1);
  BOOST_REQUIRE(idle.size() == 2u);
  for (const auto& [model, x] : idle) {
    BOOST_TEST(x.total_blocks == 16u);
    BOOST_TEST(x.used_blocks == 0u);
    BOOST_TEST(x.step_age_us == 0u);
  }
  rank.submit(1, std::vector<token_id>(40, 3), 20);
  rank.run_until(600);
  const auto busy = ask(rank, 2);
  BOOST_TEST(busy.at(0).step_age_us > 500u);
  BOOST_TEST(busy.at(0).step_age_us <= 600u);
  BOOST_TEST(busy.at(0).used_blocks >= 3u); // 40 positions, and some ahead
  BOOST_TEST(busy.at(1).step_age_us == 0u);
  BOOST_TEST(busy.at(1).used_blocks == 0u);
  rank.run_until_answered(1);
  const auto after = ask(rank, 3);
  for (const auto& [model, x] : after) {
    BOOST_TEST(x.used_blocks == 0u); // cache alone is as good as free
    BOOST_TEST(x.step_age_us == 0u);
  }
}
