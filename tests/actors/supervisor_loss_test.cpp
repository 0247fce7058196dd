#include <boost/test/unit_test.hpp>

#include "actors/supervisor_state.hpp"

using namespace tokenrouter;

namespace {

/// Four ranks: quick on 0, reference/0 on 1 and 2, reference/1 on 3.
supervisor_state supervisor(std::uint32_t self, bool ready = true) {
  supervisor_config config;
  config.self = {self};
  config.ranks = 4;
  config.model_names = {"quick", "reference"};
  config.degrade = true;
  config.shards = {{{{0}, 0}, {0}}, {{{1}, 0}, {1}}, {{{1}, 1}, {3}}, {{{1}, 0}, {2}}};
  supervisor_state s(std::move(config));
  for (std::uint32_t r = 0; ready && r < 4; ++r)
    s.on_rank_ready({{r}, {}});
  return s;
}

const replica_id first{{1}, 0};
const replica_id second{{1}, 1};

} // namespace

BOOST_AUTO_TEST_CASE(rank_0_goes_on_without_a_rank_and_says_what_is_lost) {
  auto s = supervisor(0);
  const auto one = s.on_peer_down({{2}, "no sign of life"});
  BOOST_TEST(!one.end.has_value());
  BOOST_REQUIRE(one.loss.has_value());
  BOOST_TEST((one.loss->replicas == std::vector{first}));
  BOOST_TEST(one.loss->line == "rank 2 is lost: no sign of life; the job goes on; model "
                               "'reference' has 1 replica left: requests of the lost go on there");
  const auto same_replica = s.on_peer_lost({{1}, "x"});
  BOOST_REQUIRE(same_replica.loss.has_value());
  BOOST_TEST(same_replica.loss->replicas.empty());
  const auto last = s.on_peer_left({3});
  BOOST_REQUIRE(last.loss.has_value());
  BOOST_TEST((last.loss->replicas == std::vector{second}));
  BOOST_TEST(last.loss->line.find("'reference' is out of service") != std::string::npos);
  for (const auto& again :
       {s.on_peer_down({{3}, "y"}), s.on_peer_lost({{2}, "y"}), s.on_peer_left({1})}) {
    BOOST_TEST(!again.end.has_value());
    BOOST_TEST(!again.loss.has_value());
  }
  BOOST_TEST(s.lost_ranks().size() == 3u);
  BOOST_TEST(s.on_finished(0).has_value());
}

BOOST_AUTO_TEST_CASE(other_ranks_ask_rank_0_and_cannot_go_on_without_it) {
  auto s = supervisor(1);
  const auto down = s.on_peer_down({{3}, "no sign of life"});
  BOOST_TEST(down.ask);
  BOOST_TEST(!down.end.has_value());
  BOOST_TEST(!down.loss.has_value());
  const auto told = s.on_rank_lost({3});
  BOOST_REQUIRE(told.has_value());
  BOOST_TEST((told->replicas == std::vector{second}));
  BOOST_TEST(told->line.empty());
  BOOST_TEST(!s.on_rank_lost({3}).has_value());
  const auto end = s.on_peer_down({{0}, "no sign of life"}).end;
  BOOST_REQUIRE(end.has_value());
  BOOST_TEST(end->exit_code == 1);
  BOOST_TEST(!end->tell_peers); // they see it themselves
  BOOST_TEST(end->tell_user);
}

BOOST_AUTO_TEST_CASE(a_loss_before_the_job_is_ready_ends_it) {
  auto s = supervisor(0, false);
  const auto end = s.on_peer_down({{2}, "no sign of life"}).end;
  BOOST_REQUIRE(end.has_value());
  BOOST_TEST(end->tell_peers);
  BOOST_TEST(end->reason.find("not ready") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(without_any_model_the_job_ends) {
  supervisor_config config;
  config.ranks = 2;
  config.model_names = {"quick"};
  config.degrade = true;
  config.shards = {{{{0}, 0}, {1}}};
  supervisor_state s(std::move(config));
  s.on_rank_ready({{0}, {}});
  s.on_rank_ready({{1}, {}});
  const auto end = s.on_peer_down({{1}, "no sign of life"}).end;
  BOOST_REQUIRE(end.has_value());
  BOOST_TEST(end->reason.find("no model is left") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_failed_step_of_a_split_replica_waits_for_word_of_a_loss) {
  auto s = supervisor(1);
  model_failed split{{first, 0}, {errc::unavailable, "the others did not answer"}, true};
  BOOST_TEST(s.hold_failure(split));
  BOOST_TEST(!s.on_actor_down("model", first).has_value());
  split.waited = true;
  BOOST_TEST(!s.hold_failure(split));
  auto other = supervisor(1);
  other.on_rank_lost({2});
  BOOST_TEST(!other.on_model_failed(split).has_value());
  BOOST_TEST(!other.on_actor_down("model", first).has_value());
  BOOST_TEST(s.on_model_failed(split).has_value()); // no rank was lost
  auto whole = supervisor(3);
  BOOST_TEST(!whole.hold_failure({{second, 0}, {errc::unavailable, "x"}, true}));
  BOOST_TEST(!whole.hold_failure({{first, 0}, {errc::not_found, "x"}, false}));
}
