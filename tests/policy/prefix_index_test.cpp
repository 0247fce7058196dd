#include <boost/test/unit_test.hpp>

#include <random>

#include "runtime/policy/block_ledger.hpp"
#include "runtime/policy/prefix_index.hpp"

using namespace tokenrouter;

namespace {

/// Parks a request without giving anything back.
constexpr std::uint32_t everything = 1u << 16;

std::vector<token_id> tokens(std::size_t count, token_id first = 0) {
  std::vector<token_id> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(first + static_cast<token_id>(i));
  return out;
}

bool lease(block_ledger& ledger, std::uint64_t n, std::uint32_t count, std::uint32_t kept = 0,
           std::vector<block_ledger::copy>* copies = nullptr) {
  const block_ledger::want w{{n}, count, n, kept};
  const auto out = ledger.lease({&w, 1});
  if (copies != nullptr)
    *copies = out.copies;
  return out.granted[0];
}

std::vector<block_id> table(const block_ledger& ledger, std::uint64_t n) {
  const auto t = ledger.table({n});
  return {t.begin(), t.end()};
}

} // namespace

BOOST_AUTO_TEST_CASE(only_whole_blocks_of_the_same_tokens_match) {
  prefix_index index;
  const std::vector<block_id> blocks{7, 8, 9};
  BOOST_TEST(index.insert(tokens(40), blocks).size() == 2u);
  BOOST_TEST(index.match(tokens(40), 9).size() == 2u);
  BOOST_TEST(index.match(tokens(31), 9).size() == 1u);
  BOOST_TEST(index.match(tokens(40), 1).size() == 1u);
  auto other = tokens(40);
  other[16] = 999;
  BOOST_TEST(index.match(other, 9) == (std::vector<block_id>{7}), boost::test_tools::per_element());
  other[0] = 999;
  BOOST_TEST(index.match(other, 9).empty());
}

BOOST_AUTO_TEST_CASE(the_first_block_of_a_prefix_stays_when_it_is_inserted_again) {
  prefix_index index;
  index.insert(tokens(32), std::vector<block_id>{1, 2});
  const auto taken = index.insert(tokens(48), std::vector<block_id>{5, 6, 7});
  BOOST_TEST(taken == (std::vector<block_id>{7}), boost::test_tools::per_element());
  BOOST_TEST(index.match(tokens(48), 9) == (std::vector<block_id>{1, 2, 7}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(eviction_takes_the_least_recent_leaf_that_may_go) {
  prefix_index index;
  index.insert(tokens(32), std::vector<block_id>{1, 2});
  index.insert(tokens(16, 500), std::vector<block_id>{3});
  index.match(tokens(32), 9);
  const auto any = [](block_id) { return true; };
  BOOST_TEST(index.evict([](block_id b) { return b != 3; }).value() == 2u);
  BOOST_TEST(index.evict(any).value() == 3u);
  BOOST_TEST(index.evict(any).value() == 1u);
  BOOST_TEST(!index.evict(any));
  BOOST_TEST(index.block_count() == 0u);
}

BOOST_AUTO_TEST_CASE(forgetting_a_block_forgets_what_needs_it) {
  prefix_index index;
  index.insert(tokens(48), std::vector<block_id>{1, 2, 3});
  BOOST_TEST(index.forget(2).size() == 2u);
  BOOST_TEST(index.forget(2).empty());
  BOOST_TEST(index.match(tokens(48), 9).size() == 1u);
  BOOST_TEST(index.evict([](block_id) { return true; }).value() == 1u);
}

BOOST_AUTO_TEST_CASE(a_released_prefix_serves_the_next_request_without_new_blocks) {
  block_ledger ledger(8);
  BOOST_TEST(lease(ledger, 1, 40));
  const auto first = table(ledger, 1);
  ledger.remember({1}, tokens(40));
  ledger.release({1});
  BOOST_TEST(ledger.free_blocks() == 6u);
  BOOST_TEST(ledger.cached_blocks() == 2u);
  BOOST_TEST(ledger.adopt({2}, 2, tokens(40), 39) == 32u);
  BOOST_TEST(table(ledger, 2)[0] == first[0]);
  BOOST_TEST(ledger.cached_blocks() == 0u);
  BOOST_TEST(lease(ledger, 2, 40, 32));
  BOOST_TEST(ledger.consistent());
  ledger.release({2});
  BOOST_TEST(ledger.free_blocks() + ledger.cached_blocks() == 8u);
}

BOOST_AUTO_TEST_CASE(writing_to_a_shared_block_gives_a_copy_of_its_own) {
  block_ledger ledger(8);
  BOOST_TEST(lease(ledger, 1, 32));
  ledger.remember({1}, tokens(32));
  std::vector<block_ledger::copy> copies;
  const auto shared = table(ledger, 1);
  BOOST_TEST(lease(ledger, 1, 33, 31, &copies));
  BOOST_REQUIRE(copies.size() == 1u);
  BOOST_TEST(copies[0].from == shared[1]);
  BOOST_TEST(copies[0].to == table(ledger, 1)[1]);
  BOOST_TEST(table(ledger, 1)[0] == shared[0]);
  BOOST_TEST(ledger.consistent());
  // A block that is written from its first position on needs no copy of what it held.
  BOOST_TEST(ledger.adopt({2}, 2, tokens(32), 32) == 32u);
  BOOST_TEST(lease(ledger, 2, 32, 16, &copies));
  BOOST_TEST(copies.empty());
}

BOOST_AUTO_TEST_CASE(a_full_pool_gives_up_its_cache_before_anything_else) {
  block_ledger ledger(3);
  BOOST_TEST(lease(ledger, 1, 32));
  ledger.remember({1}, tokens(32));
  ledger.release({1});
  BOOST_TEST(lease(ledger, 2, 16));
  ledger.park({2}, everything);
  BOOST_TEST(lease(ledger, 3, 32));
  BOOST_TEST(table(ledger, 2).size() == 1u);
  BOOST_TEST(ledger.consistent());
}

// Found by simulation: the oldest request could not grow because the cache held a block before its
// own, and because the block it had to write was shared with the cache alone.
BOOST_AUTO_TEST_CASE(the_oldest_request_can_use_the_whole_pool_whatever_is_cached) {
  block_ledger ledger(3);
  BOOST_TEST(lease(ledger, 1, 16));
  ledger.remember({1}, tokens(16));
  BOOST_TEST(lease(ledger, 2, 32)); // the same start, in blocks of its own
  ledger.remember({2}, tokens(32)); // its second block stands behind request 1's first
  ledger.release({1});
  BOOST_TEST(lease(ledger, 2, 48, 31));
  BOOST_TEST(ledger.consistent());
  ledger.remember({2}, tokens(48));
  BOOST_TEST(lease(ledger, 2, 48, 47));
  BOOST_TEST(ledger.consistent());
}

BOOST_AUTO_TEST_CASE(references_are_conserved_over_random_histories) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    block_ledger ledger(static_cast<std::uint32_t>(8 + random() % 20));
    const auto text = [&](std::uint64_t n) { return tokens(120, static_cast<token_id>(n % 3)); };
    for (int i = 0; i < 500; ++i) {
      const std::uint64_t n = 1 + random() % 8;
      const auto count = static_cast<std::uint32_t>(1 + random() % 120);
      switch (random() % 6) {
      case 0:
        ledger.release({n});
        break;
      case 1:
        ledger.park({n}, everything);
        break;
      case 2:
        ledger.adopt({n}, n, text(n), count);
        break;
      case 3: {
        auto prefix = text(n);
        prefix.resize(std::min<std::size_t>(count, table(ledger, n).size() * 16));
        ledger.remember({n}, prefix);
        break;
      }
      default:
        lease(ledger, n, count, static_cast<std::uint32_t>(random() % count));
      }
      BOOST_REQUIRE_MESSAGE(ledger.consistent(), "seed " << seed << " step " << i);
    }
    for (std::uint64_t n = 1; n <= 8; ++n)
      ledger.release({n});
    BOOST_REQUIRE(ledger.free_blocks() + ledger.cached_blocks() == ledger.total_blocks());
  }
}
