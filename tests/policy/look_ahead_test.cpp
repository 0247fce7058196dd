#include <boost/test/unit_test.hpp>

#include "runtime/policy/look_ahead.hpp"

using namespace tokenrouter;

namespace {

struct look_ahead_row {
  const char* what;
  look_ahead_query query; ///< tokens, tokens_max, free blocks, total blocks
  std::uint32_t blocks;
};
const std::vector<look_ahead_row> look_ahead_rows{
    {"an empty pool, a long way to go", {17, 1000, 98, 100}, 4},
    {"the block it has has room, yet the sixty-fifth position needs a fourth more",
     {16, 1000, 99, 100},
     4},
    {"one position past a block reaches as far", {33, 1000, 97, 100}, 4},
    {"the next to last of a block needs no fifth", {31, 1000, 98, 100}, 4},
    {"it will end soon", {17, 40, 98, 100}, 1},
    {"it will end within the block it has", {17, 32, 98, 100}, 0},
    {"it will end one position later", {17, 33, 98, 100}, 1},
    {"it is at its end", {40, 40, 98, 100}, 0},
    {"it is said to be beyond its end", {41, 40, 98, 100}, 0},
    {"no end is known", {17, 0, 98, 100}, 0},
    {"nothing is free", {17, 1000, 0, 100}, 0},
    {"an eighth is left, rounded up", {17, 1000, 13, 100}, 0},
    {"one block more", {17, 1000, 14, 100}, 1},
    {"less than it wants", {17, 1000, 16, 100}, 3},
    {"just enough", {17, 1000, 17, 100}, 4},
    {"a pool of one block", {1, 1000, 0, 1}, 0},
    {"a small pool keeps one block", {1, 1000, 3, 4}, 2},
    {"positions near the end of their type", {4294967290u, 4294967295u, 50, 100}, 0},
};

} // namespace

BOOST_AUTO_TEST_CASE(look_ahead_stops_at_the_end_of_the_request_and_at_the_reserve) {
  for (const auto& r : look_ahead_rows)
    BOOST_TEST_CONTEXT(r.what) {
      BOOST_TEST(look_ahead_blocks(r.query) == r.blocks);
    }
}
