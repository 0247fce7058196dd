#include <boost/test/unit_test.hpp>

#include <thread>
#include <vector>

#include "launch/route_probe.hpp"
#include "runtime/transport/loopback.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(every_rank_measures_its_way_to_every_other) {
  constexpr std::uint32_t ranks = 3;
  loopback_network network(ranks);
  std::vector<std::vector<peer_route>> routes(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back(
        [&, r] { routes[r] = probe_routes(network.endpoint({r}), {r}, ranks, 20'000); });
  for (auto& thread : threads)
    thread.join();
  for (std::uint32_t r = 0; r < ranks; ++r) {
    BOOST_REQUIRE(routes[r].size() == ranks);
    for (std::uint32_t peer = 0; peer < ranks; ++peer) {
      BOOST_TEST((routes[r][peer].one_way_us >= 0) == (peer != r));
      BOOST_TEST(routes[r][peer].carrier == (peer == r ? "" : "loopback"));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_does_not_answer_is_given_up) {
  loopback_network network(2);
  const auto routes = probe_routes(network.endpoint({0}), {0}, 2, 20);
  BOOST_TEST(routes[1].one_way_us == -1.0F);
  BOOST_TEST(routes[1].carrier == "loopback");
}
