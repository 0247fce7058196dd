#include <boost/test/unit_test.hpp>

#include <numeric>
#include <random>

#include "runtime/policy/block_ledger.hpp"

using namespace tokenrouter;

namespace {

request_id req(std::uint64_t n) {
  return {n};
}

std::vector<token_id> words(std::size_t count, token_id first = 0) {
  std::vector<token_id> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

bool lease_one(block_ledger& ledger, std::uint64_t n, std::uint32_t tokens,
               std::uint32_t kept_tokens = 0) {
  const block_ledger::want w{req(n), tokens, n, kept_tokens};
  return ledger.lease({&w, 1}).granted[0];
}

/// A ledger whose cache alone has the KV of `tokens`.
block_ledger with_cache(std::uint32_t blocks, const std::vector<token_id>& tokens) {
  block_ledger ledger(blocks);
  lease_one(ledger, 1000, static_cast<std::uint32_t>(tokens.size()));
  ledger.remember(req(1000), tokens);
  ledger.release(req(1000));
  return ledger;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_peek_counts_whole_blocks_and_keeps_nothing) {
  auto ledger = with_cache(8, words(48));
  BOOST_TEST(ledger.known_tokens(words(40)) == 32u);
  BOOST_TEST(ledger.known_tokens(words(80)) == 48u);
  BOOST_TEST(ledger.known_tokens(words(32, 1)) == 0u);
  BOOST_TEST(ledger.cached_blocks() == 3u);
  BOOST_TEST(!ledger.has_loans());
}

BOOST_AUTO_TEST_CASE(pinned_blocks_outlast_any_pressure) {
  auto ledger = with_cache(4, words(32));
  const auto pinned = ledger.pin(7, words(32), 1, 1);
  BOOST_REQUIRE(pinned.size() == 1u);
  BOOST_TEST(ledger.has_loans());
  BOOST_TEST(!lease_one(ledger, 1, 64)); // the pool's size, but one block is not to be had
  BOOST_TEST(lease_one(ledger, 1, 48));
  for (const block_id block : ledger.table(req(1)))
    BOOST_TEST(block != pinned[0]);
  BOOST_TEST(ledger.consistent());
  ledger.unpin(7);
  ledger.unpin(7); // no effect
  BOOST_TEST(lease_one(ledger, 1, 64));
  BOOST_TEST(ledger.consistent());
}

BOOST_AUTO_TEST_CASE(a_pin_is_of_all_its_blocks_or_none) {
  auto ledger = with_cache(8, words(32));
  BOOST_TEST(ledger.pin(1, words(48), 1, 2).empty());
  BOOST_TEST(ledger.pin(2, words(32, 5), 0, 2).empty());
  BOOST_TEST(!ledger.has_loans());
  BOOST_TEST(ledger.pin(3, words(32), 0, 2).size() == 2u);
  BOOST_TEST(ledger.pin(4, words(32), 0, 2).size() == 2u); // two readers
  ledger.unpin(3);
  BOOST_TEST(ledger.has_loans());
  ledger.unpin(4);
  BOOST_TEST(ledger.cached_blocks() + ledger.free_blocks() == 8u);
}

BOOST_AUTO_TEST_CASE(a_request_that_writes_a_pinned_block_gets_a_copy) {
  block_ledger ledger(4);
  BOOST_TEST(lease_one(ledger, 1, 16));
  ledger.remember(req(1), words(16));
  const auto pinned = ledger.pin(1, words(16), 0, 1);
  BOOST_TEST(lease_one(ledger, 1, 16, 8));
  BOOST_TEST(ledger.table(req(1))[0] != pinned[0]);
  ledger.unpin(1);
  BOOST_TEST(ledger.consistent());
}

BOOST_AUTO_TEST_CASE(a_reservation_takes_what_nobody_uses) {
  auto ledger = with_cache(6, words(32));
  BOOST_TEST(lease_one(ledger, 1, 32));
  BOOST_TEST(ledger.reserve(1, 9).size() == 4u); // two free, two of the cache
  BOOST_TEST(ledger.table(req(1)).size() == 2u);
  BOOST_TEST(ledger.free_blocks() == 0u);
  BOOST_TEST(!lease_one(ledger, 2, 16));
  BOOST_TEST(ledger.consistent());
  BOOST_TEST(ledger.join(1, {req(9), 9, {}, 0, 0}) == 0u);
  BOOST_TEST(ledger.free_blocks() == 4u);
  BOOST_TEST(ledger.join(2, {req(9), 9, {}, 0, 0}) == 0u); // there was none
}

BOOST_AUTO_TEST_CASE(filled_blocks_follow_the_requests_own_and_serve_others) {
  auto ledger = with_cache(8, words(16));
  BOOST_TEST(ledger.adopt(req(1), 1, words(48), 48) == 16u);
  const auto reserved = ledger.reserve(5, 3);
  BOOST_REQUIRE(reserved.size() == 3u);
  const auto tokens = words(48);
  BOOST_TEST(ledger.join(5, {req(1), 1, tokens, 1, 2}) == 32u);
  BOOST_TEST(ledger.table(req(1)).size() == 3u);
  BOOST_TEST(ledger.table(req(1))[2] == reserved[1]);
  BOOST_TEST(ledger.free_blocks() == 5u);
  BOOST_TEST(ledger.adopt(req(2), 2, words(48), 48) == 48u);
  BOOST_TEST(ledger.consistent());
}

BOOST_AUTO_TEST_CASE(a_request_that_lost_its_blocks_gets_none_of_those_that_were_filled) {
  auto ledger = with_cache(6, words(16));
  BOOST_TEST(ledger.adopt(req(9), 9, words(48), 48) == 16u);
  BOOST_TEST(ledger.reserve(5, 2).size() == 2u);
  BOOST_TEST(lease_one(ledger, 1, 64)); // older: takes what request 9 has
  BOOST_TEST(ledger.table(req(9)).empty());
  const auto tokens = words(48);
  BOOST_TEST(ledger.join(5, {req(9), 9, tokens, 1, 2}) == 0u);
  BOOST_TEST(ledger.table(req(9)).empty());
  ledger.release(req(1));
  BOOST_TEST(ledger.free_blocks() + ledger.cached_blocks() == 6u);
}

BOOST_AUTO_TEST_CASE(nothing_is_lost_over_many_loans) {
  std::mt19937 random(5);
  block_ledger ledger(24);
  std::uint64_t next = 1;
  std::vector<std::uint64_t> pins;
  for (int turn = 0; turn < 3000; ++turn) {
    const std::uint64_t n = 1 + random() % 8;
    const auto tokens = words(16 * (1 + random() % 5), static_cast<token_id>(random() % 2));
    switch (random() % 5) {
    case 0:
      lease_one(ledger, n, static_cast<std::uint32_t>(tokens.size()));
      ledger.remember(req(n), tokens);
      break;
    case 1:
      ledger.release(req(n));
      break;
    case 2:
      if (!ledger.pin(next, tokens, 0, 1).empty())
        pins.push_back(next);
      ++next;
      break;
    case 3:
      if (!pins.empty()) {
        ledger.unpin(pins.back());
        pins.pop_back();
      }
      break;
    default: {
      const auto got = static_cast<std::uint32_t>(ledger.reserve(next, 3).size());
      ledger.join(next++, {req(50), 50, words(16 * got), 0, got});
      ledger.release(req(50));
    }
    }
    BOOST_REQUIRE(ledger.consistent());
  }
}
