#include <boost/test/unit_test.hpp>

#include "runtime/policy/placement.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(models_are_spread_over_the_ranks_there_are) {
  struct row {
    const char* what;
    std::vector<placement_wish> wishes;
    std::size_t entry;
    std::uint32_t ranks;
    std::vector<std::uint32_t> placed;
  };
  const std::vector<row> rows{
      {"one rank hosts all", {{{}, 1}, {{}, 9}}, 0, 1, {0, 0}},
      {"one each", {{{}, 1}, {{}, 9}}, 0, 2, {0, 1}},
      {"more ranks than models", {{{}, 1}, {{}, 9}}, 0, 4, {0, 1}},
      {"more models than ranks: light ones together", {{{}, 1}, {{}, 2}, {{}, 9}}, 0, 2, {0, 0, 1}},
      {"fixed ranks stay", {{rank_id{1}, 1}, {{}, 9}}, 0, 2, {1, 0}},
      {"the entry model is where clients come in", {{{}, 9}, {{}, 1}}, 1, 2, {1, 0}},
  };
  for (const auto& r : rows) {
    const auto placed = place_replicas(r.wishes, r.entry, r.ranks);
    for (std::size_t i = 0; i < r.placed.size(); ++i)
      BOOST_TEST(placed[i].value == r.placed[i], r.what);
  }
}
