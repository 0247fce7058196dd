#include <boost/test/unit_test.hpp>

#include <numeric>

#include "actors/kv_serve_state.hpp"

using namespace tokenrouter;

namespace {

constexpr replica_id own{{0}, 0}, other{{0}, 1}, third{{0}, 2};

std::vector<token_id> words(std::size_t count) {
  std::vector<token_id> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

struct bench {
  kv_serve_state serving{{own, 1, {{other, {0}}, {third, {0}}}}};
  kv_fetcher_effects fx;
};

} // namespace

BOOST_AUTO_TEST_CASE(blocks_that_are_lent_stay_pinned_until_they_come_back) {
  bench b;
  b.serving.on_ask({other, own, 4, words(32)}, b.fx);
  BOOST_REQUIRE(b.fx.peeks.size() == 1u);
  b.serving.on_known({other, 4, 32}, b.fx);
  BOOST_TEST(b.fx.offers[0].tokens == 32u);
  b.serving.on_borrow({other, own, 4, 1, 1, words(32)}, b.fx);
  BOOST_REQUIRE(b.fx.pins.size() == 1u);
  b.serving.on_pinned({b.fx.pins[0].pin, {8}}, b.fx);
  BOOST_TEST((b.fx.loans.at(0).blocks == std::vector<block_id>{8}));
  b.serving.on_return({other, own, 4, 0}, b.fx); // another piece
  b.serving.on_return({third, own, 4, 1}, b.fx); // another reader
  BOOST_TEST(b.fx.unpins.empty());
  b.serving.on_return({other, own, 4, 1}, b.fx);
  BOOST_TEST(b.fx.unpins.size() == 1u);
  b.serving.on_return({other, own, 4, 1}, b.fx);
  BOOST_TEST(b.fx.unpins.size() == 1u);
  BOOST_TEST(b.serving.open() == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_evicted_meanwhile_is_said_to_be_gone) {
  bench b;
  b.serving.on_borrow({other, own, 4, 0, 2, words(32)}, b.fx);
  b.serving.on_pinned({1, {}}, b.fx);
  BOOST_REQUIRE(b.fx.loans.size() == 1u);
  BOOST_TEST(b.fx.loans[0].blocks.empty());
  BOOST_TEST(b.fx.unpins.empty());
  BOOST_TEST(b.serving.open() == 0u);
}

BOOST_AUTO_TEST_CASE(a_lost_reader_holds_no_pin_at_any_stage) {
  for (const bool pinned : {false, true}) {
    bench b;
    b.serving.on_borrow({other, own, 4, 0, 1, words(16)}, b.fx);
    if (pinned)
      b.serving.on_pinned({1, {8}}, b.fx);
    b.serving.on_replicas_lost({&other, 1}, b.fx);
    if (!pinned)
      b.serving.on_pinned({1, {8}}, b.fx);
    BOOST_TEST(b.fx.unpins.size() == 1u, pinned);
    BOOST_TEST(b.fx.loans.size() == (pinned ? 1u : 0u), pinned);
    b.serving.on_borrow({other, own, 5, 0, 1, words(16)}, b.fx); // of a shard that still lives
    BOOST_TEST(b.fx.pins.size() == 1u, pinned);
    BOOST_TEST(b.serving.open() == 0u, pinned);
  }
}

BOOST_AUTO_TEST_CASE(a_replica_that_has_lost_a_shard_lends_nothing) {
  bench b;
  b.serving.on_borrow({other, own, 4, 0, 1, words(16)}, b.fx);
  b.serving.on_pinned({1, {8}}, b.fx);
  b.serving.on_replicas_lost({&own, 1}, b.fx);
  BOOST_TEST(b.fx.unpins.size() == 1u);
  b.serving.on_borrow({third, own, 5, 0, 1, words(16)}, b.fx);
  BOOST_TEST(b.fx.pins.size() == 1u);
  BOOST_TEST(b.serving.open() == 0u);
}
