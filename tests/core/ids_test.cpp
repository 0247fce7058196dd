#include <boost/test/unit_test.hpp>

#include "runtime/core/ids.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_request_id_names_its_home_rank) {
  for (std::uint32_t rank : {0u, 1u, 4095u, 0xffffffu})
    for (std::uint64_t counter : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 40) - 1})
      BOOST_TEST(home_of(make_request_id({rank}, counter)).value == rank);
}

BOOST_AUTO_TEST_CASE(request_ids_of_two_ranks_never_meet) {
  BOOST_TEST(make_request_id({1}, 7).value != make_request_id({2}, 7).value);
  BOOST_TEST(make_request_id({1}, 7).value != make_request_id({1}, 8).value);
}
