#include <boost/test/unit_test.hpp>

#include <utility>

#include "actors/kv_mover_state.hpp"
#include "actors/model_kv.hpp"
#include "runtime/exec/scripted/scripted_backend.hpp"
#include "tests/support/wrapped_backend.hpp"

using namespace tokenrouter;

namespace {

constexpr replica_id own{{0}, 0}, other{{0}, 1}, third{{0}, 2};
constexpr std::uint16_t shard = 1;
constexpr std::uint64_t layout = 77;
constexpr std::uint64_t block_bytes = 64;
constexpr std::uint32_t kv_blocks = 32;

/// The mover of one shard of `own`; its siblings are on its own rank.
struct bench {
  bulk_mover bulk{{0}};
  std::vector<std::uint64_t> news;
  kv_mover_state mover{{{own, shard}, {{other, {0}}, {third, {0}}}, kv_blocks},
                       bulk,
                       [this](std::uint64_t x) { news.push_back(x); }};
  kv_mover_effects fx;

  /// Loaded, and its siblings known.
  explicit bench(bool in_place = false) {
    mover.on_facts({layout, block_bytes, {}}, fx);
    const std::vector<std::uint8_t> address(in_place ? 8 : 0);
    for (const replica_id sibling : {other, third}) {
      mover.on_greeting({{sibling, shard}, {own, shard}, layout, address}, fx);
      if (in_place)
        mover.on_reached({sibling, true}, fx);
    }
    fx = {};
  }

  void hear() {
    for (const std::uint64_t x : std::exchange(news, {}))
      mover.on_bulk(x, fx);
  }

  /// The fetcher orders blocks 10 and 11 to be filled from the sibling's 20 and 21.
  void order() {
    mover.on_fill({{own, shard}, other, 3, 4, {{20, 10}, {21, 11}}}, fx);
    hear();
  }

  void send_data(const kv_wish& wish) {
    const auto out =
        bulk.prepare(bulk_way::out, wish.blocks.size() * block_bytes, [](std::uint64_t) {});
    bulk.send(out, {0}, wish.tag);
    bulk.release(out);
    hear();
  }

  void expect_filled(bool sound) {
    BOOST_REQUIRE(fx.filled.size() == 1u);
    BOOST_TEST((fx.filled[0].from == shard_id{own, shard}));
    BOOST_TEST((fx.filled[0].to == own));
    BOOST_TEST(fx.filled[0].fetch == 3u);
    BOOST_TEST(fx.filled[0].first_block == 4u);
    BOOST_TEST(fx.filled[0].sound == sound);
    BOOST_TEST(mover.open() == 0u);
    BOOST_TEST(bulk.transfers() == 0u);
  }

  kv_parcel parcel(const kv_wish& wish, bool sent = true) const {
    return {wish.to, wish.from, wish.number, sent, 5};
  }
};

kv_wish wish_of(replica_id reader, std::vector<block_id> blocks) {
  return {{reader, shard}, {own, shard}, 6, 9, std::move(blocks)};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_mover_tells_how_kv_comes_from_each_sibling) {
  bulk_mover bulk({0});
  kv_mover_state x({{own, shard}, {{other, {0}}, {third, {0}}, {{{0}, 3}, {0}}}, kv_blocks}, bulk,
                   [](std::uint64_t) {});
  kv_mover_effects fx;
  const std::vector<std::uint8_t> address(8);
  x.on_greeting({{other, shard}, {own, shard}, layout, address}, fx); // loaded before this one
  x.on_greeting({{third, shard}, {own, shard}, layout + 1, address}, fx);
  BOOST_TEST(fx.reaches.empty());
  x.on_facts({layout, block_bytes, std::vector<std::byte>(4)}, fx);
  BOOST_REQUIRE(fx.greetings.size() == 3u);
  BOOST_TEST((fx.greetings[0].to == shard_id{other, shard}));
  BOOST_TEST(fx.greetings[0].address.size() == 4u);
  BOOST_REQUIRE(fx.ways.size() == 1u); // its KV means something else
  BOOST_TEST((fx.ways[0].sibling == third));
  BOOST_TEST(!fx.ways[0].alike);
  BOOST_REQUIRE(fx.reaches.size() == 1u);
  x.on_reached({other, false}, fx);
  x.on_greeting({{{{0}, 3}, shard}, {own, shard}, layout, {}}, fx); // can't be read from elsewhere
  BOOST_REQUIRE(fx.ways.size() == 3u);
  for (std::size_t i = 1; i < 3; ++i) {
    BOOST_TEST(fx.ways[i].alike);
    BOOST_TEST(!fx.ways[i].in_place);
    BOOST_TEST(fx.ways[i].bytes_per_block == block_bytes);
  }
}

BOOST_AUTO_TEST_CASE(a_mover_that_shall_not_read_in_place_does_not) {
  bulk_mover bulk({0});
  kv_mover_state x({{own, shard}, {{other, {0}}}, kv_blocks, false}, bulk, [](std::uint64_t) {});
  kv_mover_effects fx;
  x.on_facts({layout, block_bytes, {}}, fx);
  x.on_greeting({{other, shard}, {own, shard}, layout, std::vector<std::uint8_t>(8)}, fx);
  BOOST_TEST(fx.reaches.empty());
  BOOST_REQUIRE(fx.ways.size() == 1u);
  BOOST_TEST((fx.ways[0].alike && !fx.ways[0].in_place));
}

BOOST_AUTO_TEST_CASE(a_pool_in_reach_is_read_in_place) {
  bench b(true);
  b.order();
  BOOST_REQUIRE(b.fx.direct_reads.size() == 1u);
  BOOST_TEST((b.fx.direct_reads[0].sibling == other));
  BOOST_TEST(b.fx.direct_reads[0].copies.at(1).from == 21u);
  BOOST_TEST(b.fx.wishes.empty());
  b.mover.on_imported({b.fx.direct_reads[0].number, true}, b.fx);
  b.expect_filled(true);
}

BOOST_AUTO_TEST_CASE(blocks_are_wished_for_imported_and_told_whatever_comes_first) {
  for (const bool data_first : {false, true}) {
    bench b;
    b.order();
    BOOST_REQUIRE(b.fx.wishes.size() == 1u);
    const kv_wish wish = b.fx.wishes[0];
    BOOST_TEST((wish.to == shard_id{other, shard}));
    BOOST_TEST((wish.blocks == std::vector<block_id>{20, 21}));
    if (data_first)
      b.send_data(wish);
    b.mover.on_parcel(b.parcel(wish), b.fx);
    if (!data_first)
      b.send_data(wish);
    BOOST_REQUIRE(b.fx.imports.size() == 1u);
    BOOST_TEST((b.fx.imports[0].blocks == std::vector<block_id>{10, 11}));
    BOOST_TEST(b.fx.imports[0].checksum == 5u);
    BOOST_TEST(b.fx.filled.empty());
    b.mover.on_imported({b.fx.imports[0].number, data_first}, b.fx);
    b.expect_filled(data_first);
  }
}

BOOST_AUTO_TEST_CASE(a_parcel_that_did_not_leave_is_told) {
  bench b;
  b.order();
  b.mover.on_parcel({{third, shard}, {own, shard}, b.fx.wishes.at(0).number, false, 0}, b.fx);
  BOOST_TEST(b.fx.filled.empty()); // not from there
  b.mover.on_parcel(b.parcel(b.fx.wishes.at(0), false), b.fx);
  b.expect_filled(false);
}

BOOST_AUTO_TEST_CASE(an_order_that_can_not_be_met_is_answered) {
  bench outside;
  outside.mover.on_fill({{own, shard}, other, 3, 4, {{20, kv_blocks}}}, outside.fx);
  outside.expect_filled(false);
  bench nobody;
  nobody.mover.on_fill({{own, shard}, {{0}, 9}, 3, 4, {{20, 10}}}, nobody.fx);
  nobody.expect_filled(false);
  bench lost;
  lost.mover.on_replicas_lost({&other, 1}, lost.fx);
  lost.order();
  lost.expect_filled(false);
}

BOOST_AUTO_TEST_CASE(what_is_wished_for_is_exported_once_there_is_a_buffer_and_sent) {
  bench b;
  b.mover.on_wish(wish_of(other, {3, 4}), b.fx);
  BOOST_TEST(b.fx.exports.empty());
  b.hear();
  BOOST_REQUIRE(b.fx.exports.size() == 1u);
  BOOST_TEST((b.fx.exports[0].blocks == std::vector<block_id>{3, 4}));
  BOOST_TEST(b.fx.parcels.empty());
  b.mover.on_exported({b.fx.exports[0].number, 123}, b.fx);
  BOOST_REQUIRE(b.fx.parcels.size() == 1u);
  BOOST_TEST(b.fx.parcels[0].sent);
  BOOST_TEST(b.fx.parcels[0].checksum == 123u);
  BOOST_TEST(b.fx.parcels[0].number == 6u);
  const auto in = b.bulk.prepare(bulk_way::in, 2 * block_bytes, [](std::uint64_t) {});
  b.bulk.receive(in, {0}, 9);
  b.bulk.release(in);
  b.hear();
  BOOST_TEST(b.mover.open() == 0u);
  BOOST_TEST(b.bulk.transfers() == 0u);
}

BOOST_AUTO_TEST_CASE(blocks_that_there_are_not_are_refused) {
  bench b;
  b.mover.on_wish(wish_of(other, {3, kv_blocks}), b.fx);
  BOOST_REQUIRE(b.fx.parcels.size() == 1u);
  BOOST_TEST(!b.fx.parcels[0].sent);
  BOOST_TEST(b.mover.open() == 0u);
}

BOOST_AUTO_TEST_CASE(an_order_ends_at_any_stage_when_a_replica_is_lost) {
  for (const replica_id gone : {other, own})
    for (int stage = 0; stage < 3; ++stage) {
      bench b;
      b.mover.on_fill({{own, shard}, other, 3, 4, {{20, 10}, {21, 11}}}, b.fx);
      if (stage > 0)
        b.hear();
      if (stage > 1) {
        b.mover.on_parcel(b.parcel(b.fx.wishes.at(0)), b.fx);
        b.send_data(b.fx.wishes[0]);
      }
      b.mover.on_replicas_lost({&gone, 1}, b.fx);
      b.hear();
      if (stage == 2) { // the model is at it
        BOOST_TEST(b.fx.filled.empty());
        b.mover.on_imported({b.fx.imports.at(0).number, true}, b.fx);
      }
      b.expect_filled(stage == 2);
    }
}

BOOST_AUTO_TEST_CASE(a_wish_of_a_lost_replica_ends_at_any_stage) {
  for (const replica_id gone : {other, own})
    for (int stage = 0; stage < 4; ++stage) {
      bench b;
      if (stage > 0)
        b.mover.on_wish(wish_of(other, {3}), b.fx);
      if (stage > 1)
        b.hear();
      if (stage > 2)
        b.mover.on_exported({b.fx.exports.at(0).number, 1}, b.fx);
      b.mover.on_replicas_lost({&gone, 1}, b.fx);
      b.hear();
      if (stage == 0)
        b.mover.on_wish(wish_of(other, {3}), b.fx);
      if (stage == 2)
        b.mover.on_exported({b.fx.exports.at(0).number, 1}, b.fx);
      BOOST_TEST(b.fx.parcels.size() == (stage == 3 ? 1u : 0u), stage);
      BOOST_TEST(b.mover.open() == 0u, stage);
      BOOST_TEST(b.bulk.transfers() == 0u, stage);
    }
}

BOOST_AUTO_TEST_CASE(how_a_replica_is_run_is_not_what_its_blocks_look_like) {
  // Once the names of kernels counted, with times measured at load: no two GPUs agreed.
  struct described final : test::wrapped_backend {
    model_facts told;
    described(std::string kernels, std::string kv_layout)
        : wrapped_backend(std::make_unique<scripted_backend>(scripted_options{})) {
      told = inner().facts();
      told.kernels = std::move(kernels);
      told.kv_layout = std::move(kv_layout);
    }
    const model_facts& facts() const override { return told; }
  };
  described one("sums in 4.2 us", "cuda"), two("sums in 4.3 us", "cuda"), third("avx2", "avx2");
  BOOST_TEST(model_kv(one).facts().layout == model_kv(two).facts().layout);
  BOOST_TEST(model_kv(one).facts().layout != model_kv(third).facts().layout);
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_not_imported) {
  scripted_backend device({});
  BOOST_REQUIRE(device.allocate_kv(4).has_value());
  model_kv kv(device);
  const auto bytes = static_cast<std::size_t>(kv.facts().bytes_per_block);
  const auto buffer = std::make_shared<bulk_buffer>(2 * bytes);
  buffer->use(2 * bytes);
  const auto exported = kv.export_to({7, {0, 1}, buffer});
  BOOST_TEST(kv.import_from({1, {2, 3}, buffer, exported.checksum}).sound);
  buffer->bytes()[5] ^= std::byte{1};
  BOOST_TEST(!kv.import_from({1, {2, 3}, buffer, exported.checksum}).sound);
  buffer->use(bytes);
  BOOST_TEST(!kv.import_from({1, {2, 3}, buffer, exported.checksum}).sound);
}
