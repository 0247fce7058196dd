#include <boost/test/unit_test.hpp>

#include <random>

#include "runtime/policy/block_ledger.hpp"

using namespace tokenrouter;

namespace {

/// Parks a request without giving anything back.
constexpr std::uint32_t everything = 1u << 16;

request_id req(std::uint64_t n) {
  return {n};
}

bool lease_one(block_ledger& ledger, std::uint64_t n, std::uint32_t tokens) {
  const block_ledger::want w{req(n), tokens, n};
  return ledger.lease({&w, 1}).granted[0];
}

} // namespace

BOOST_AUTO_TEST_CASE(a_lease_covers_the_tokens_and_a_release_gives_all_back) {
  block_ledger ledger(8);
  BOOST_TEST(lease_one(ledger, 1, 17));
  BOOST_TEST(ledger.table(req(1)).size() == 2u);
  BOOST_TEST(lease_one(ledger, 1, 32));
  BOOST_TEST(ledger.table(req(1)).size() == 2u);
  BOOST_TEST(lease_one(ledger, 1, 33));
  BOOST_TEST(ledger.free_blocks() == 5u);
  ledger.release(req(1));
  ledger.release(req(1));
  BOOST_TEST(ledger.free_blocks() == 8u);
  BOOST_TEST(ledger.table(req(1)).empty());
}

BOOST_AUTO_TEST_CASE(parked_requests_are_evicted_least_recently_parked_first) {
  block_ledger ledger(3);
  for (std::uint64_t n : {1, 2, 3})
    BOOST_TEST(lease_one(ledger, n, 16));
  ledger.park(req(2), everything);
  ledger.park(req(1), everything);
  const block_ledger::want w{req(3), 32, 3};
  const auto out = ledger.lease({&w, 1});
  BOOST_TEST(out.granted[0]);
  BOOST_TEST(out.evicted.size() == 1u);
  BOOST_TEST(out.evicted[0].value == 2u);
  BOOST_TEST(ledger.table(req(1)).size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_old_request_takes_from_younger_ones_never_the_reverse) {
  block_ledger ledger(2);
  BOOST_TEST(lease_one(ledger, 1, 16));
  BOOST_TEST(lease_one(ledger, 2, 16));
  BOOST_TEST(!lease_one(ledger, 2, 32));
  BOOST_TEST(ledger.table(req(2)).size() == 1u);
  BOOST_TEST(lease_one(ledger, 1, 32));
  BOOST_TEST(ledger.table(req(2)).empty());
}

BOOST_AUTO_TEST_CASE(rows_granted_in_a_lease_are_not_evicted_by_later_rows_of_it) {
  block_ledger ledger(2);
  const std::vector<block_ledger::want> wants{{req(5), 16, 5}, {req(1), 32, 1}};
  const auto out = ledger.lease(wants);
  BOOST_TEST(out.granted[0]);
  BOOST_TEST(!out.granted[1]);
  BOOST_TEST(out.evicted.empty());
  BOOST_TEST(ledger.consistent());
}

BOOST_AUTO_TEST_CASE(a_want_whose_parked_blocks_an_earlier_want_took_is_refused) {
  block_ledger ledger(2);
  BOOST_TEST(lease_one(ledger, 1, 16));
  BOOST_TEST(lease_one(ledger, 2, 16));
  ledger.park(req(1), everything);
  const std::vector<block_ledger::want> wants{{req(2), 32, 2}, {req(1), 16, 1}};
  const auto out = ledger.lease(wants);
  BOOST_TEST(out.granted[0]);
  BOOST_TEST(!out.granted[1]);
  BOOST_TEST(out.evicted.size() == 1u);
  BOOST_TEST(ledger.table(req(1)).empty());
}

BOOST_AUTO_TEST_CASE(more_than_the_pool_is_refused_without_evicting_anyone) {
  block_ledger ledger(2);
  BOOST_TEST(lease_one(ledger, 2, 16));
  BOOST_TEST(!lease_one(ledger, 1, 48));
  BOOST_TEST(ledger.table(req(2)).size() == 1u);
}

BOOST_AUTO_TEST_CASE(blocks_are_conserved_over_random_histories) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    block_ledger ledger(static_cast<std::uint32_t>(1 + random() % 20));
    for (int i = 0; i < 400; ++i) {
      std::vector<block_ledger::want> wants;
      for (auto k = random() % 4; k > 0; --k) {
        const std::uint64_t n = 1 + random() % 8;
        bool twice = false;
        for (const auto& w : wants)
          twice = twice || w.request.value == n;
        if (!twice)
          wants.push_back({req(n), 1 + static_cast<std::uint32_t>(random() % 120), n});
      }
      const auto out = ledger.lease(wants);
      for (std::size_t k = 0; k < wants.size(); ++k)
        if (out.granted[k])
          BOOST_REQUIRE(ledger.table(wants[k].request).size() >= blocks_for(wants[k].tokens));
      for (const auto& gone : out.evicted)
        for (std::size_t k = 0; k < wants.size(); ++k)
          BOOST_REQUIRE(
              !(wants[k].request == gone && out.granted[k] && ledger.table(gone).empty()));
      if (random() % 2)
        ledger.park(req(1 + random() % 8), everything);
      if (random() % 5 == 0)
        ledger.release(req(1 + random() % 8));
      BOOST_REQUIRE_MESSAGE(ledger.consistent(), "seed " << seed << " step " << i);
    }
    for (std::uint64_t n = 1; n <= 8; ++n)
      ledger.release(req(n));
    BOOST_REQUIRE(ledger.free_blocks() == ledger.total_blocks());
  }
}

BOOST_AUTO_TEST_CASE(a_request_that_grows_gets_blocks_ahead_of_it) {
  block_ledger ledger(32);
  const block_ledger::want w{req(1), 17, 1, 0, 400};
  const auto out = ledger.lease({&w, 1});
  BOOST_TEST(ledger.table(req(1)).size() == 6u);
  BOOST_TEST(out.own_tokens == std::vector<std::uint32_t>{96});
  BOOST_TEST(!out.took_look_ahead);
  const block_ledger::want again{req(1), 96, 1, 95, 400};
  ledger.lease({&again, 1});
  BOOST_TEST(ledger.table(req(1)).size() == 6u); // it did not have to grow
  ledger.release(req(1));
  BOOST_TEST(ledger.free_blocks() == 32u);
}

BOOST_AUTO_TEST_CASE(look_ahead_goes_back_at_parking) {
  block_ledger ledger(32);
  const block_ledger::want w{req(1), 17, 1, 0, 400};
  ledger.lease({&w, 1});
  ledger.park(req(1), 17);
  BOOST_TEST(ledger.table(req(1)).size() == 2u);
  BOOST_TEST(ledger.free_blocks() == 30u);
  BOOST_TEST(ledger.consistent());
}

BOOST_AUTO_TEST_CASE(under_pressure_look_ahead_goes_before_cache_and_parked_requests) {
  block_ledger ledger(16);
  const std::vector<token_id> prompt(32, 5);
  BOOST_TEST(lease_one(ledger, 9, 32));
  ledger.remember(req(9), prompt);
  ledger.release(req(9)); // two blocks of cache
  BOOST_TEST(lease_one(ledger, 3, 32));
  ledger.park(req(3), 32); // two parked
  const block_ledger::want ahead{req(1), 17, 1, 0, 400};
  ledger.lease({&ahead, 1}); // two, and four ahead
  BOOST_TEST(ledger.free_blocks() == 6u);
  const block_ledger::want needy{req(2), 160, 2};
  const block_ledger::holding held{req(1), 20};
  const auto out = ledger.lease({&needy, 1}, {&held, 1});
  BOOST_TEST(out.granted[0]);
  BOOST_TEST(out.took_look_ahead);
  BOOST_TEST(out.evicted.empty());
  BOOST_TEST(ledger.table(req(1)).size() == 2u);
  BOOST_TEST(ledger.table(req(3)).size() == 2u);
  BOOST_TEST(ledger.cached_blocks() == 2u);
  BOOST_TEST(ledger.free_blocks() == 0u);
  BOOST_TEST(ledger.consistent());
}

BOOST_AUTO_TEST_CASE(what_a_holder_has_grown_into_is_not_taken_back) {
  block_ledger ledger(16);
  const block_ledger::want ahead{req(1), 17, 1, 0, 400};
  ledger.lease({&ahead, 1});
  const block_ledger::want needy{req(2), 192, 2};
  const block_ledger::holding held{req(1), 65};
  BOOST_TEST(!ledger.lease({&needy, 1}, {&held, 1}).granted[0]);
  BOOST_TEST(ledger.table(req(1)).size() == 5u);
}

BOOST_AUTO_TEST_CASE(a_lease_that_had_to_take_look_ahead_gives_none) {
  block_ledger ledger(16);
  const block_ledger::want first{req(1), 16, 1, 0, 400};
  ledger.lease({&first, 1});
  const std::vector<block_ledger::want> wants{{req(2), 16, 2, 0, 400}, {req(3), 180, 3, 0, 400}};
  const block_ledger::holding held{req(1), 16};
  const auto out = ledger.lease(wants, {&held, 1});
  BOOST_TEST(out.granted == (std::vector<bool>{true, true}));
  BOOST_TEST(ledger.table(req(1)).size() == 1u);
  BOOST_TEST(ledger.table(req(2)).size() == 1u);
  BOOST_TEST(ledger.table(req(3)).size() == 12u);
}

BOOST_AUTO_TEST_CASE(own_blocks_end_where_the_cache_shares_them) {
  block_ledger ledger(16);
  const std::vector<token_id> prompt(48, 5);
  BOOST_TEST(lease_one(ledger, 1, 48));
  ledger.remember(req(1), prompt);
  // The second of three blocks is written again; the third stays the cache's as well.
  const block_ledger::want w{req(1), 20, 1, 18};
  const auto out = ledger.lease({&w, 1});
  BOOST_TEST(out.copies.size() == 1u);
  BOOST_TEST(out.own_tokens == std::vector<std::uint32_t>{32});
  BOOST_TEST(ledger.table(req(1)).size() == 3u);
}
