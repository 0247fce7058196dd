#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/policy/prefix_offers.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(only_enough_missing_whole_blocks_are_worth_asking_for) {
  struct row {
    prefix_need need; ///< have, max, min
    bool worth;
  };
  for (const row& x : {row{{0, 64, 64}, true}, row{{0, 63, 64}, false}, row{{0, 63, 48}, true},
                       row{{32, 64, 32}, true}, row{{32, 64, 33}, false}, row{{64, 64, 1}, false},
                       row{{0, 15, 1}, false}, row{{0, 16, 1}, true}, row{{0, 1024, 0}, false}})
    BOOST_TEST(worth_asking(x.need) == x.worth,
               x.need.have_tokens << " of " << x.need.tokens_max << ", " << x.need.min_tokens);
}

BOOST_AUTO_TEST_CASE(the_offer_that_adds_most_wins_and_the_first_among_equals) {
  struct row {
    prefix_need need;
    std::vector<std::uint32_t> offers;
    int winner; ///< -1: none
  };
  for (const row& x :
       {row{{0, 64, 16}, {}, -1}, row{{0, 64, 16}, {0, 0}, -1}, row{{0, 64, 16}, {16, 48, 32}, 1},
        row{{0, 64, 16}, {48, 48}, 0}, row{{32, 64, 16}, {32, 16}, -1},
        row{{32, 64, 16}, {16, 48}, 1}, row{{32, 64, 17}, {48}, -1}, // adds 16
        row{{0, 40, 16}, {48, 160, 32}, 0},                          // all add 32
        row{{0, 64, 0}, {64}, -1}}) {
    const auto found = choose_offer(x.need, x.offers);
    BOOST_TEST((found ? static_cast<int>(*found) : -1) == x.winner);
  }
}
