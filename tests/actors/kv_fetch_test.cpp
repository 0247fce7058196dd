#include <boost/test/unit_test.hpp>

#include <numeric>
#include <span>

#include "actors/kv_fetcher.hpp"

using namespace tokenrouter;

namespace {

constexpr replica_id own{{0}, 0}, other{{0}, 1}, third{{0}, 2};
constexpr std::uint64_t block_bytes = 64;

std::vector<token_id> words(std::size_t count) {
  std::vector<token_id> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

kv_way way_of(std::uint16_t shard, replica_id sibling, bool in_place = false, bool alike = true) {
  return {{own, shard}, own, sibling, alike, in_place, block_bytes};
}

struct bench {
  std::uint64_t now_us = 1000;
  kv_fetcher_config config;
  kv_fetch_state fetching;
  kv_fetcher_effects fx;

  explicit bench(std::uint16_t shards = 1, bool in_place = false)
      : config{own, shards, {{other, {0}}, {third, {0}}}, 32, 2 * block_bytes, 4 * block_bytes, 2},
        fetching(config, [this] { return now_us; }) {
    for (std::uint16_t i = 0; i < shards; ++i)
      for (const replica_id sibling : {other, third})
        fetching.on_way(way_of(i, sibling, in_place), fx);
    fx = {};
  }

  /// A fetch of 96 tokens of which 16 are here, up to where blocks are set aside.
  void start(std::uint32_t blocks = 5) {
    fetching.on_prefix({{1}, 1, words(96), 16, 0}, fx);
    fetching.on_offer({other, own, 1, 96}, fx);
    fetching.on_offer({third, own, 1, 48}, fx);
    BOOST_REQUIRE(fx.reserves.size() == 1u);
    BOOST_TEST(fx.reserves[0].block_count == 5u);
    std::vector<block_id> got(blocks);
    std::iota(got.begin(), got.end(), 10);
    fx = {};
    fetching.on_reserved({1, std::move(got)}, fx);
  }

  /// The sibling lends what was asked for, its blocks from 40 on.
  void lend(const kv_borrow& x) {
    std::vector<block_id> blocks(x.block_count);
    std::iota(blocks.begin(), blocks.end(), 40);
    fetching.on_loan({x.to, own, x.fetch, x.first_block, std::move(blocks)}, fx);
  }

  /// A shard answers for the piece that begins at that missing block.
  void fill(std::uint32_t first, bool sound = true, std::uint16_t shard = 0) {
    fetching.on_filled({{own, shard}, own, 1, first, sound}, fx);
  }

  void expect_end(std::uint32_t filled_blocks) {
    BOOST_REQUIRE(fx.joins.size() == 1u);
    BOOST_TEST(fx.joins[0].have_blocks == 1u);
    BOOST_TEST(fx.joins[0].filled_blocks == filled_blocks);
    BOOST_TEST(fx.joins[0].tokens.size() == 16 * (1 + filled_blocks));
    BOOST_TEST(fetching.open() == 0u);
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(siblings_are_settled_when_every_shard_knows_each) {
  kv_fetch_state x({own, 2, {{other, {0}}, {third, {0}}}, 32, block_bytes},
                   [] { return std::uint64_t{1}; });
  kv_fetcher_effects fx;
  x.on_way(way_of(0, other, true), fx);
  x.on_way(way_of(0, third), fx);
  x.on_way(way_of(0, other, true), fx); // said twice
  x.on_way(way_of(2, other), fx);       // there is no such shard
  BOOST_TEST(fx.ways.empty());
  BOOST_TEST(!x.settled());
  x.on_way(way_of(1, third, false, false), fx); // its KV means something else there
  BOOST_REQUIRE(fx.ways.size() == 1u);
  BOOST_TEST(!fx.ways[0].alike);
  BOOST_TEST(!x.settled());
  x.on_way(way_of(1, other), fx);
  BOOST_TEST(x.settled());
  BOOST_REQUIRE(fx.ways.size() == 2u);
  BOOST_TEST(fx.ways[1].in_place == 1u);
  x.on_prefix({{1}, 1, words(96), 0, 0}, fx);
  BOOST_REQUIRE(fx.asks.size() == 1u);
  BOOST_TEST((fx.asks[0].to == other));
}

BOOST_AUTO_TEST_CASE(a_sibling_that_is_lost_is_not_waited_for) {
  kv_fetch_state x({own, 1, {{other, {0}}, {third, {0}}}, 32, block_bytes},
                   [] { return std::uint64_t{1}; });
  kv_fetcher_effects fx;
  x.on_way(way_of(0, other), fx);
  BOOST_TEST(!x.settled());
  x.on_replicas_lost(std::vector{third}, fx);
  BOOST_TEST(x.settled());
}

BOOST_AUTO_TEST_CASE(the_ways_of_all_shards_are_told_in_one_line) {
  const kv_fetcher_config config{own, 4, {}, 32, block_bytes};
  const kv_sibling from{other, {1}};
  const auto line = [&](std::uint16_t in_place) {
    return describe_ways({from, true, in_place}, "m", config, "UCX");
  };
  BOOST_TEST(describe_ways({from, false, 0}, "m", config, "UCX") ==
             "KV of m/1 for m/0: not taken, its blocks are laid out otherwise");
  BOOST_TEST(line(4) == "KV of m/1 for m/0: read in place");
  BOOST_TEST(line(0) == "KV of m/1 for m/0: through UCX");
  BOOST_TEST(line(3) == "KV of m/1 for m/0: 3 of 4 shards read in place, the others through UCX");
}

BOOST_AUTO_TEST_CASE(what_is_not_worth_it_or_known_nowhere_ends_at_once) {
  bench b;
  b.fetching.on_prefix({{1}, 1, words(48), 32, 0}, b.fx); // one block is missing, two are the least
  BOOST_TEST(b.fx.asks.empty());
  BOOST_REQUIRE(b.fx.joins.size() == 1u);
  BOOST_TEST(b.fx.joins[0].filled_blocks == 0u);
  b.fx = {};
  b.fetching.on_prefix({{2}, 2, words(96), 16, 0}, b.fx);
  BOOST_TEST(b.fx.asks.size() == 2u);
  b.fetching.on_offer({other, own, 2, 32}, b.fx);
  BOOST_TEST(b.fx.joins.empty());
  b.fetching.on_offer({other, own, 2, 96}, b.fx); // said twice
  BOOST_TEST(b.fx.joins.empty());
  b.fetching.on_offer({third, own, 2, 0}, b.fx);
  b.expect_end(0);
}

BOOST_AUTO_TEST_CASE(pieces_are_borrowed_two_at_a_time_and_join_in_order) {
  bench b;
  b.start();
  BOOST_REQUIRE(b.fx.borrows.size() == 2u);
  const auto wishes = std::exchange(b.fx.borrows, {});
  BOOST_TEST(wishes[0].first_block == 1u);
  BOOST_TEST(wishes[1].first_block == 3u);
  BOOST_TEST(wishes[1].tokens.size() == 80u);
  BOOST_TEST((wishes[0].to == other));
  b.lend(wishes[1]); // the second comes first
  BOOST_REQUIRE(b.fx.fills.size() == 1u);
  BOOST_TEST(b.fx.fills[0].first_block == 2u);
  BOOST_TEST(b.fx.fills[0].copies.at(1).from == 41u);
  BOOST_TEST(b.fx.fills[0].copies.at(1).to == 13u);
  BOOST_TEST(b.fx.returns.empty());
  b.fill(2);
  BOOST_REQUIRE(b.fx.returns.size() == 1u);
  BOOST_TEST(b.fx.returns[0].first_block == 3u);
  BOOST_REQUIRE(b.fx.borrows.size() == 1u); // the third piece, of one block
  const auto last = b.fx.borrows[0];
  BOOST_TEST(last.block_count == 1u);
  b.lend(wishes[0]);
  b.fill(0);
  b.lend(last);
  BOOST_TEST(b.fx.joins.empty());
  b.fill(4);
  BOOST_TEST(b.fx.returns.size() == 3u);
  b.expect_end(5);
}

BOOST_AUTO_TEST_CASE(pieces_that_all_shards_read_in_place_are_larger) {
  bench b(2, true);
  b.start();
  BOOST_REQUIRE(b.fx.borrows.size() == 2u);
  BOOST_TEST(b.fx.borrows[0].block_count == 4u);
  BOOST_TEST(b.fx.borrows[1].block_count == 1u);
}

BOOST_AUTO_TEST_CASE(a_piece_is_there_when_every_shard_has_it) {
  bench b(3);
  b.start(2);
  b.lend(b.fx.borrows.at(0));
  BOOST_REQUIRE(b.fx.fills.size() == 3u);
  for (std::uint16_t i = 0; i < 3; ++i)
    BOOST_TEST((b.fx.fills[i].to == shard_id{own, i}));
  b.fill(0, true, 2);
  b.fill(0, true, 2); // said twice
  b.fill(0, true, 0);
  BOOST_TEST(b.fx.returns.empty());
  BOOST_TEST(b.fx.joins.empty());
  b.fill(0, true, 1);
  BOOST_TEST(b.fx.returns.size() == 1u);
  b.expect_end(2);
}

BOOST_AUTO_TEST_CASE(a_piece_that_one_shard_lacks_is_given_back_and_not_used) {
  bench b(2);
  b.start(2);
  b.lend(b.fx.borrows.at(0));
  b.fill(0, false, 1);
  BOOST_TEST(b.fx.returns.empty()); // the other shard may still be reading
  b.fill(0, true, 0);
  BOOST_TEST(b.fx.returns.size() == 1u);
  b.expect_end(0);
}

BOOST_AUTO_TEST_CASE(a_piece_that_is_gone_or_damaged_ends_the_fetch_before_it) {
  for (const bool damaged : {false, true}) {
    bench b;
    b.start();
    const auto wishes = std::exchange(b.fx.borrows, {});
    if (damaged) {
      b.lend(wishes[1]);
      b.fill(2, false);
    } else {
      b.fetching.on_loan({other, own, 1, wishes[1].first_block, {}}, b.fx);
    }
    BOOST_TEST(b.fx.joins.empty()); // the first is still on its way
    b.lend(wishes[0]);
    b.fill(0);
    BOOST_TEST(b.fx.borrows.empty());
    BOOST_TEST(b.fx.returns.size() == (damaged ? 2u : 1u));
    b.expect_end(2);
  }
}

BOOST_AUTO_TEST_CASE(a_loan_of_another_size_is_given_back_at_once) {
  bench b;
  b.start(2);
  b.fetching.on_loan({other, own, 1, 1, {40}}, b.fx);
  BOOST_TEST(b.fx.fills.empty());
  BOOST_TEST(b.fx.returns.size() == 1u);
  b.expect_end(0);
}

namespace {

/// A fetch of two blocks that takes so long, with KV sent or read in place; false: it was left.
bool fetch_in(bench& b, std::uint64_t us, double computed_us_per_token) {
  b.fx = {};
  b.fetching.on_prefix({{7}, 7, words(48), 16, computed_us_per_token}, b.fx);
  const std::uint64_t number = b.fx.asks.at(0).fetch;
  b.fetching.on_offer({other, own, number, 48}, b.fx);
  b.fetching.on_offer({third, own, number, 0}, b.fx);
  if (b.fx.reserves.empty()) {
    BOOST_TEST(b.fx.joins.at(0).filled_blocks == 0u);
    return false;
  }
  b.fetching.on_reserved({number, {10, 11}}, b.fx);
  b.lend(b.fx.borrows.at(0));
  b.now_us += us;
  b.fetching.on_filled({{own, 0}, own, number, 0, true}, b.fx);
  BOOST_TEST(b.fx.joins.at(0).filled_blocks == 2u);
  return true;
}

} // namespace

BOOST_AUTO_TEST_CASE(what_is_computed_sooner_than_it_is_sent_is_left) {
  bench b;
  BOOST_TEST(fetch_in(b, 3200, 10)); // nothing is known of sending: 100 us a token
  BOOST_TEST(!fetch_in(b, 3200, 10));
  BOOST_TEST(fetch_in(b, 3200, 50)); // twice as long is fine
  BOOST_TEST(fetch_in(b, 3200, 0));  // nothing is known of computing
  int made = 0;
  for (int i = 0; i < 320; ++i)
    made += fetch_in(b, 3200, 10);
  BOOST_TEST(made == 10); // now and then, to see whether it is still so
  for (int i = 0; i < 32 * 12; ++i)
    made += fetch_in(b, 320, 10); // 10 us a token by now
  BOOST_TEST(fetch_in(b, 320, 10));

  bench in_place(1, true);
  bench forced;
  forced.config.weighs_cost = false;
  forced.fetching = kv_fetch_state(forced.config, [&forced] { return forced.now_us; });
  for (const replica_id sibling : {other, third})
    forced.fetching.on_way(way_of(0, sibling), forced.fx);
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(fetch_in(in_place, 320000, 1));
    BOOST_TEST(fetch_in(forced, 320000, 1));
  }
}

BOOST_AUTO_TEST_CASE(a_full_pool_gives_fewer_blocks_or_no_fetch) {
  bench few;
  few.start(2);
  BOOST_TEST(few.fx.borrows.size() == 1u);
  bench none;
  none.start(1); // less than is worth it
  BOOST_TEST(none.fx.borrows.empty());
  none.expect_end(0);
}

BOOST_AUTO_TEST_CASE(lost_siblings_are_waited_for_at_no_stage) {
  const replica_id all[] = {other, third};
  bench asking;
  asking.fetching.on_prefix({{1}, 1, words(96), 16, 0}, asking.fx);
  asking.fetching.on_offer({other, own, 1, 96}, asking.fx);
  asking.fetching.on_replicas_lost(all, asking.fx);
  asking.expect_end(0);

  bench partly;
  partly.fetching.on_prefix({{1}, 1, words(96), 16, 0}, partly.fx);
  partly.fetching.on_offer({other, own, 1, 96}, partly.fx);
  partly.fetching.on_replicas_lost({&third, 1}, partly.fx);
  BOOST_TEST(partly.fx.reserves.size() == 1u); // of the one that lives
  partly.fetching.on_replicas_lost({&other, 1}, partly.fx);
  BOOST_TEST(partly.fx.joins.empty());
  partly.fetching.on_reserved({1, {10, 11, 12, 13, 14}}, partly.fx);
  partly.expect_end(0);

  bench moving;
  moving.start();
  moving.lend(moving.fx.borrows[0]);
  moving.fetching.on_replicas_lost(all, moving.fx);
  BOOST_TEST(moving.fx.joins.empty()); // a shard is at one piece, which is sound
  moving.fill(0);
  moving.expect_end(2);

  bench reading(1, true);
  reading.start();
  reading.lend(reading.fx.borrows[0]);
  reading.fetching.on_replicas_lost(all, reading.fx);
  reading.fill(0); // … of memory that is gone
  reading.expect_end(0);

  moving.fx = {};
  moving.fetching.on_prefix({{3}, 3, words(96), 16, 0}, moving.fx);
  BOOST_TEST(moving.fx.asks.empty());
  moving.expect_end(0);
}

BOOST_AUTO_TEST_CASE(a_replica_that_has_lost_a_shard_waits_for_none) {
  bench b(2);
  b.start();
  b.lend(b.fx.borrows[0]);
  b.fill(0, true, 0);
  b.fetching.on_replicas_lost({&own, 1}, b.fx);
  b.expect_end(0);
  b.fx = {};
  b.fill(0, true, 1); // too late
  b.fetching.on_prefix({{3}, 3, words(96), 16, 0}, b.fx);
  BOOST_TEST(b.fx.asks.empty());
  b.expect_end(0);

  bench waiting(2);
  waiting.fetching.on_prefix({{1}, 1, words(96), 16, 0}, waiting.fx);
  waiting.fetching.on_offer({other, own, 1, 96}, waiting.fx);
  waiting.fetching.on_offer({third, own, 1, 0}, waiting.fx);
  waiting.fetching.on_replicas_lost({&own, 1}, waiting.fx);
  waiting.fetching.on_reserved({1, {10, 11, 12, 13, 14}}, waiting.fx);
  BOOST_TEST(waiting.fx.borrows.empty());
  waiting.expect_end(0);
}
