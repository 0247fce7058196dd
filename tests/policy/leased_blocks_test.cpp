#include <boost/test/unit_test.hpp>

#include "runtime/policy/leased_blocks.hpp"

using namespace tokenrouter;

namespace {

/// Three blocks: the first is the cache's as well, the last the pool would not vouch for.
leased_blocks granted() {
  const std::vector<block_id> table{7, 3, 5};
  leased_blocks blocks;
  blocks.grant(table, 20, 32);
  return blocks;
}

} // namespace

BOOST_AUTO_TEST_CASE(nothing_is_covered_before_a_lease) {
  BOOST_TEST(!leased_blocks().cover(0, 1));
}

BOOST_AUTO_TEST_CASE(a_grant_covers_from_the_block_it_starts_in_to_its_end) {
  const auto blocks = granted();
  BOOST_TEST(blocks.cover(20, 21));
  BOOST_TEST(blocks.cover(16, 32));
  BOOST_TEST(!blocks.cover(15, 17));
  BOOST_TEST(!blocks.cover(31, 33));
  BOOST_TEST(!blocks.cover(32, 33));
  BOOST_TEST(blocks.table().size() == 3u);
}

BOOST_AUTO_TEST_CASE(whole_blocks_that_are_shared_are_not_covered_any_more) {
  auto blocks = granted();
  blocks.share(31); // of these sixteen, not all are known to the cache
  BOOST_TEST(blocks.cover(16, 32));
  blocks.share(32);
  BOOST_TEST(!blocks.cover(31, 32));
  blocks.share(0);
  BOOST_TEST(!blocks.cover(31, 32));
}

BOOST_AUTO_TEST_CASE(what_was_taken_back_is_neither_covered_nor_in_the_table) {
  auto blocks = granted();
  blocks.cut(33);
  BOOST_TEST(blocks.table().size() == 3u);
  BOOST_TEST(blocks.cover(16, 32));
  blocks.cut(16);
  BOOST_TEST(blocks.table().size() == 1u);
  BOOST_TEST(blocks.table()[0] == 7u);
  BOOST_TEST(!blocks.cover(16, 17));
  blocks.cut(40); // never grows
  BOOST_TEST(blocks.table().size() == 1u);
  BOOST_TEST(!blocks.cover(16, 17));
}

BOOST_AUTO_TEST_CASE(nothing_is_covered_after_the_turn_went_away) {
  auto blocks = granted();
  blocks.clear();
  BOOST_TEST(blocks.table().empty());
  BOOST_TEST(!blocks.cover(16, 17));
  const std::vector<block_id> one{4};
  blocks.grant(one, 0, 16); // what was shared before does not matter to a new lease
  BOOST_TEST(blocks.cover(0, 16));
}
