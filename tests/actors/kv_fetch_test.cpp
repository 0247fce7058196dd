#include <boost/test/unit_test.hpp>

#include <numeric>
#include <span>

#include "actors/kv_fetch_state.hpp"
#include "actors/model_kv.hpp"
#include "runtime/exec/scripted/scripted_backend.hpp"

using namespace tokenrouter;

namespace {

constexpr replica_id own{{0}, 0}, other{{0}, 1}, third{{0}, 2};
constexpr std::uint64_t layout = 77;
constexpr std::uint64_t block_bytes = 64;

std::vector<token_id> words(std::size_t count) {
  std::vector<token_id> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

/// One fetcher, both sides; all its siblings are on its own rank.
struct bench {
  bulk_mover mover{{0}};
  std::vector<std::uint64_t> news;
  kv_fetcher_config config{own, {{other, {0}}, {third, {0}}}, 32, 2 * block_bytes};
  kv_fetch_state fetching{config, mover, [this](std::uint64_t x) { news.push_back(x); }};
  kv_serve_state serving{config, mover, [this](std::uint64_t x) { news.push_back(x); }};
  kv_fetcher_effects fx;

  explicit bench(bool in_place = false) {
    fetching.on_facts({layout, block_bytes, {}}, fx);
    serving.set_bytes_per_block(block_bytes);
    const std::vector<std::uint8_t> address(in_place ? 8 : 0);
    for (const replica_id sibling : {other, third}) {
      fetching.on_greeting({sibling, own, layout, address}, fx);
      if (in_place)
        fetching.on_reached({sibling, true}, fx);
    }
    fx = {};
  }

  void hear() {
    for (const std::uint64_t x : std::exchange(news, {}))
      if (!fetching.on_bulk(x, fx))
        serving.on_bulk(x, fx);
  }

  /// A fetch of 96 tokens of which 16 are here, up to where blocks are set aside.
  void start(std::uint32_t blocks = 5) {
    fetching.on_prefix({{1}, 1, words(96), 16}, fx);
    fetching.on_offer({other, own, 1, 96}, fx);
    fetching.on_offer({third, own, 1, 48}, fx);
    BOOST_REQUIRE(fx.reserves.size() == 1u);
    BOOST_TEST(fx.reserves[0].block_count == 5u);
    std::vector<block_id> got(blocks);
    std::iota(got.begin(), got.end(), 10);
    fx = {};
    fetching.on_reserved({1, std::move(got)}, fx);
    hear();
  }

  /// The data of a piece that was asked for with that tag.
  void send_data(const kv_fetch& wish) {
    const auto out =
        mover.prepare(bulk_way::out, wish.block_count * block_bytes, [](std::uint64_t) {});
    mover.send(out, {0}, wish.tag);
    mover.release(out);
    hear();
  }

  void expect_end(std::uint32_t filled_blocks) {
    BOOST_REQUIRE(fx.joins.size() == 1u);
    BOOST_TEST(fx.joins[0].have_blocks == 1u);
    BOOST_TEST(fx.joins[0].filled_blocks == filled_blocks);
    BOOST_TEST(fx.joins[0].tokens.size() == 16 * (1 + filled_blocks));
    BOOST_TEST(fetching.open() == 0u);
    BOOST_TEST(mover.transfers() == 0u);
  }
};

kv_piece sent(const kv_fetch& wish) {
  return {wish.to, own, wish.fetch, wish.first_block, true, {}, 5};
}

} // namespace

BOOST_AUTO_TEST_CASE(siblings_are_settled_when_each_is_known) {
  bulk_mover mover({0});
  kv_fetch_state x({own, {{other, {0}}, {third, {0}}}, 32, block_bytes}, mover,
                   [](std::uint64_t) {});
  kv_fetcher_effects fx;
  x.on_greeting({other, own, layout, std::vector<std::uint8_t>(8)}, fx); // loaded before this one
  BOOST_TEST(!x.settled());
  x.on_facts({layout, block_bytes, {}}, fx);
  BOOST_TEST(!x.settled());
  x.on_greeting({third, own, layout + 1, {}}, fx); // its KV means something else
  BOOST_TEST(!x.settled());
  x.on_reached({other, false}, fx);
  BOOST_TEST(x.settled());
}

BOOST_AUTO_TEST_CASE(a_sibling_that_is_lost_is_not_waited_for) {
  bulk_mover mover({0});
  kv_fetch_state x({own, {{other, {0}}, {third, {0}}}, 32, block_bytes}, mover,
                   [](std::uint64_t) {});
  kv_fetcher_effects fx;
  x.on_facts({layout, block_bytes, {}}, fx);
  x.on_greeting({other, own, layout, {}}, fx);
  BOOST_TEST(!x.settled());
  x.on_replicas_lost(std::vector{third}, fx);
  BOOST_TEST(x.settled());
}

BOOST_AUTO_TEST_CASE(what_is_not_worth_it_or_known_nowhere_ends_at_once) {
  bench b;
  b.fetching.on_prefix({{1}, 1, words(48), 32}, b.fx); // one block is missing, two are the least
  BOOST_TEST(b.fx.asks.empty());
  BOOST_REQUIRE(b.fx.joins.size() == 1u);
  BOOST_TEST(b.fx.joins[0].filled_blocks == 0u);
  b.fx = {};
  b.fetching.on_prefix({{2}, 2, words(96), 16}, b.fx);
  BOOST_TEST(b.fx.asks.size() == 2u);
  b.fetching.on_offer({other, own, 2, 32}, b.fx);
  BOOST_TEST(b.fx.joins.empty());
  b.fetching.on_offer({other, own, 2, 96}, b.fx); // said twice
  BOOST_TEST(b.fx.joins.empty());
  b.fetching.on_offer({third, own, 2, 0}, b.fx);
  b.expect_end(0);
}

BOOST_AUTO_TEST_CASE(a_sibling_of_another_layout_or_not_loaded_is_never_asked) {
  bench b;
  kv_fetch_state one(b.config, b.mover, [](std::uint64_t) {});
  one.on_greeting({other, own, layout + 1, {}}, b.fx);
  one.on_facts({layout, block_bytes, {}}, b.fx);
  b.fx = {};
  one.on_prefix({{1}, 1, words(96), 0}, b.fx);
  BOOST_TEST(b.fx.asks.empty());
  BOOST_TEST(b.fx.joins.size() == 1u);
}

BOOST_AUTO_TEST_CASE(pieces_are_asked_for_two_at_a_time_and_join_in_order) {
  bench b;
  b.start();
  BOOST_REQUIRE(b.fx.fetches.size() == 2u);
  const auto wishes = std::exchange(b.fx.fetches, {});
  BOOST_TEST(wishes[0].first_block == 1u);
  BOOST_TEST(wishes[1].first_block == 3u);
  BOOST_TEST(wishes[1].tokens.size() == 80u);
  BOOST_TEST((wishes[0].to == other));
  // The second is here first, its data before the word of it; the first the other way round.
  b.send_data(wishes[1]);
  BOOST_TEST(b.fx.imports.empty());
  b.fetching.on_piece(sent(wishes[1]), b.fx);
  BOOST_REQUIRE(b.fx.imports.size() == 1u);
  BOOST_TEST(b.fx.imports[0].checksum == 5u);
  BOOST_TEST((b.fx.imports[0].blocks == std::vector<block_id>{12, 13}));
  b.fetching.on_imported({1, 2, true}, b.fx);
  b.hear();
  BOOST_REQUIRE(b.fx.fetches.size() == 1u); // the third piece, of one block
  b.fetching.on_piece(sent(wishes[0]), b.fx);
  BOOST_TEST(b.fx.imports.size() == 1u);
  b.send_data(wishes[0]);
  BOOST_TEST(b.fx.imports.size() == 2u);
  b.fetching.on_imported({1, 0, true}, b.fx);
  const auto last = b.fx.fetches[0];
  BOOST_TEST(last.block_count == 1u);
  b.fetching.on_piece(sent(last), b.fx);
  b.send_data(last);
  BOOST_TEST(b.fx.joins.empty());
  b.fetching.on_imported({1, 4, true}, b.fx);
  b.expect_end(5);
}

BOOST_AUTO_TEST_CASE(a_piece_that_is_gone_or_damaged_ends_the_fetch_before_it) {
  for (const bool damaged : {false, true}) {
    bench b;
    b.start();
    const auto wishes = std::exchange(b.fx.fetches, {});
    if (damaged) {
      b.send_data(wishes[1]);
      b.fetching.on_piece(sent(wishes[1]), b.fx);
      b.fetching.on_imported({1, 2, false}, b.fx);
    } else {
      b.fetching.on_piece({other, own, 1, wishes[1].first_block, false, {}, 0}, b.fx);
    }
    BOOST_TEST(b.fx.joins.empty()); // the first is still on its way
    b.send_data(wishes[0]);
    b.fetching.on_piece(sent(wishes[0]), b.fx);
    b.fetching.on_imported({1, 0, true}, b.fx);
    BOOST_TEST(b.fx.fetches.empty());
    b.expect_end(2);
  }
}

BOOST_AUTO_TEST_CASE(a_full_pool_gives_fewer_blocks_or_no_fetch) {
  bench few;
  few.start(2);
  BOOST_TEST(few.fx.fetches.size() == 1u);
  bench none;
  none.start(1); // less than is worth it
  BOOST_TEST(none.fx.fetches.empty());
  none.expect_end(0);
}

BOOST_AUTO_TEST_CASE(a_pool_in_reach_is_read_in_place_and_told_when_it_was) {
  bench b(true);
  b.start();
  BOOST_REQUIRE(b.fx.fetches.size() == 2u);
  BOOST_TEST(b.fx.fetches[0].tag == 0u);
  b.fetching.on_piece({other, own, 1, 1, true, {40, 41}, 0}, b.fx);
  BOOST_REQUIRE(b.fx.direct_reads.size() == 1u);
  BOOST_TEST(b.fx.direct_reads[0].copies[1].from == 41u);
  BOOST_TEST(b.fx.direct_reads[0].copies[1].to == 11u);
  BOOST_TEST(b.fx.reads.empty());
  b.fetching.on_imported({1, 0, true}, b.fx);
  BOOST_REQUIRE(b.fx.reads.size() == 1u);
  BOOST_TEST(b.fx.reads[0].first_block == 1u);
}

BOOST_AUTO_TEST_CASE(lost_siblings_are_waited_for_at_no_stage) {
  const replica_id all[] = {other, third};
  bench asking;
  asking.fetching.on_prefix({{1}, 1, words(96), 16}, asking.fx);
  asking.fetching.on_offer({other, own, 1, 96}, asking.fx);
  asking.fetching.on_replicas_lost(all, asking.fx);
  asking.expect_end(0);

  bench partly;
  partly.fetching.on_prefix({{1}, 1, words(96), 16}, partly.fx);
  partly.fetching.on_offer({other, own, 1, 96}, partly.fx);
  partly.fetching.on_replicas_lost({&third, 1}, partly.fx);
  BOOST_TEST(partly.fx.reserves.size() == 1u); // of the one that lives
  partly.fetching.on_replicas_lost({&other, 1}, partly.fx);
  BOOST_TEST(partly.fx.joins.empty());
  partly.fetching.on_reserved({1, {10, 11, 12, 13, 14}}, partly.fx);
  partly.expect_end(0);

  bench moving;
  moving.start();
  const auto wishes = moving.fx.fetches;
  moving.send_data(wishes[0]);
  moving.fetching.on_piece(sent(wishes[0]), moving.fx);
  moving.fetching.on_replicas_lost(all, moving.fx);
  BOOST_TEST(moving.fx.joins.empty()); // the model is at one piece, which is sound
  moving.fetching.on_imported({1, 0, true}, moving.fx);
  moving.expect_end(2);

  moving.fx = {};
  moving.fetching.on_prefix({{3}, 3, words(96), 16}, moving.fx);
  BOOST_TEST(moving.fx.asks.empty());
  moving.expect_end(0);
}

BOOST_AUTO_TEST_CASE(a_piece_is_pinned_from_its_buffer_to_its_export) {
  bench b;
  b.serving.on_ask({other, own, 4, words(32)}, b.fx);
  BOOST_REQUIRE(b.fx.peeks.size() == 1u);
  b.serving.on_known({other, 4, 32}, b.fx);
  BOOST_TEST(b.fx.offers[0].tokens == 32u);
  b.serving.on_fetch({other, own, 4, 0, 2, 9, words(32)}, b.fx);
  b.hear();
  BOOST_REQUIRE(b.fx.pins.size() == 1u);
  b.serving.on_pinned({b.fx.pins[0].pin, {3, 4}}, b.fx);
  BOOST_REQUIRE(b.fx.exports.size() == 1u);
  BOOST_TEST(b.fx.unpins.empty());
  BOOST_TEST(b.fx.pieces.empty());
  b.serving.on_exported({b.fx.exports[0].number, 123}, b.fx);
  BOOST_TEST(b.fx.unpins.size() == 1u);
  BOOST_REQUIRE(b.fx.pieces.size() == 1u);
  BOOST_TEST(b.fx.pieces[0].given);
  BOOST_TEST(b.fx.pieces[0].checksum == 123u);
  const auto in = b.mover.prepare(bulk_way::in, 2 * block_bytes, [](std::uint64_t) {});
  b.mover.receive(in, {0}, 9);
  b.hear();
  BOOST_TEST(b.serving.open() == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_evicted_meanwhile_is_said_to_be_gone) {
  bench b;
  b.serving.on_fetch({other, own, 4, 0, 2, 9, words(32)}, b.fx);
  b.hear();
  b.serving.on_pinned({1, {}}, b.fx);
  BOOST_REQUIRE(b.fx.pieces.size() == 1u);
  BOOST_TEST(!b.fx.pieces[0].given);
  BOOST_TEST(b.fx.unpins.empty());
  BOOST_TEST(b.serving.open() == 0u);
  BOOST_TEST(b.mover.transfers() == 0u);
}

BOOST_AUTO_TEST_CASE(blocks_that_are_read_in_place_stay_pinned_until_then) {
  bench b;
  b.serving.on_fetch({other, own, 4, 1, 1, 0, words(32)}, b.fx);
  b.serving.on_pinned({1, {8}}, b.fx);
  BOOST_TEST((b.fx.pieces.at(0).blocks == std::vector<block_id>{8}));
  b.serving.on_read({other, own, 4, 0}, b.fx); // another piece
  b.serving.on_read({third, own, 4, 1}, b.fx); // another reader
  BOOST_TEST(b.fx.unpins.empty());
  b.serving.on_read({other, own, 4, 1}, b.fx);
  BOOST_TEST(b.fx.unpins.size() == 1u);
  b.serving.on_read({other, own, 4, 1}, b.fx);
  BOOST_TEST(b.fx.unpins.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_lost_reader_holds_no_pin_at_any_stage) {
  for (const std::uint64_t tag : {0, 9})
    for (int steps = 0; steps < 4; ++steps) {
      bench b;
      b.serving.on_fetch({other, own, 4, 0, 1, tag, words(16)}, b.fx);
      if (steps > 0)
        b.hear();
      if (steps > 1)
        b.serving.on_pinned({1, {8}}, b.fx);
      if (steps > 2 && tag != 0)
        b.serving.on_exported({1, 0}, b.fx);
      const bool was_pinned = steps > 1;
      b.serving.on_replicas_lost({&other, 1}, b.fx);
      if (steps < 2 && b.serving.open() > 0)
        b.serving.on_pinned({1, {8}}, b.fx);
      if (steps == 2 && tag != 0)
        b.serving.on_exported({1, 0}, b.fx);
      const bool asked = !b.fx.pins.empty();
      BOOST_TEST(b.fx.unpins.size() == (was_pinned || asked ? 1u : 0u), tag << " " << steps);
      BOOST_TEST(b.serving.open() == 0u, tag << " " << steps);
      BOOST_TEST(b.mover.transfers() == 0u, tag << " " << steps);
    }
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_not_imported) {
  scripted_backend device({});
  BOOST_REQUIRE(device.allocate_kv(4).has_value());
  model_kv kv(device);
  const auto bytes = static_cast<std::size_t>(kv.facts().bytes_per_block);
  const auto buffer = std::make_shared<bulk_buffer>(2 * bytes);
  buffer->use(2 * bytes);
  const auto exported = kv.export_to({7, {0, 1}, buffer});
  BOOST_TEST(kv.import_from({1, 0, {2, 3}, buffer, exported.checksum}).sound);
  buffer->bytes()[5] ^= std::byte{1};
  BOOST_TEST(!kv.import_from({1, 0, {2, 3}, buffer, exported.checksum}).sound);
  buffer->use(bytes);
  BOOST_TEST(!kv.import_from({1, 0, {2, 3}, buffer, exported.checksum}).sound);
}
