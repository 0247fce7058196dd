#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/policy/lost_models.hpp"
#include "runtime/policy/turn_epoch.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_lost_replica_is_never_chosen) {
  struct row {
    std::vector<std::uint32_t> live_requests;
    std::uint16_t chosen;
  };
  const std::vector<token_id> prompt{1, 2, 3};
  for (const row& x : {row{{lost_replica, 7}, 1}, row{{9, lost_replica, 3}, 2},
                       row{{lost_replica, lost_replica}, no_replica}, row{{lost_replica, 0}, 1}})
    BOOST_TEST(choose_replica(x.live_requests, prompt) == x.chosen);
}

BOOST_AUTO_TEST_CASE(the_largest_model_left_steps_in) {
  struct row {
    std::vector<double> parameters_billion;
    std::vector<std::uint16_t> replicas;
    std::optional<model_id> best;
  };
  for (const row& x :
       {row{{1, 8, 32}, {0, 0, 0}, model_id{2}}, row{{1, 8, 32}, {0, 3, no_replica}, model_id{1}},
        row{{32, 8, 1}, {no_replica, 0, 0}, model_id{1}}, row{{0, 0, 0}, {0, 0, 0}, model_id{2}},
        row{{}, {0, 0}, model_id{1}}, row{{1, 2}, {no_replica, no_replica}, std::nullopt}})
    BOOST_TEST((largest_left(x.parameters_billion, x.replicas) == x.best));
}

BOOST_AUTO_TEST_CASE(who_goes_on_is_next_or_where_it_began_or_the_fallback) {
  const std::vector<std::uint16_t> replicas{0, no_replica, no_replica, 2};
  struct row {
    std::uint16_t next;
    std::uint16_t start;
    std::uint16_t goes_on;
    bool pinned;
  };
  for (const row& x : {row{0, 1, 0, false}, row{3, 0, 3, false}, row{1, 0, 0, false},
                       row{1, 2, 3, true}, row{2, 2, 3, true}, row{7, 1, 7, false}}) {
    const auto out = choose_resumption({x.next}, {x.start}, {3}, replicas);
    BOOST_TEST(out.model.value == x.goes_on);
    BOOST_TEST(out.pinned == x.pinned);
  }
}

BOOST_AUTO_TEST_CASE(every_turn_of_a_later_epoch_is_newer) {
  constexpr turn_number many = (1u << epoch_turn_bits) - 1;
  BOOST_TEST(first_turn(0) == 1u);
  for (std::uint32_t epoch : {0u, 1u, epochs_max - 2}) {
    const turn_number last = first_turn(epoch) - 1 + many;
    BOOST_TEST(epoch_of(last) == epoch);
    BOOST_TEST(turn_in_epoch(last) == many);
    BOOST_TEST(last < first_turn(epoch + 1));
    BOOST_TEST(turn_in_epoch(first_turn(epoch + 1)) == 1u);
  }
}
