// Every rank runs every case; cases begin and end together.
#include <boost/test/unit_test.hpp>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <poll.h>

#include "runtime/core/clock.hpp"
#include "runtime/reactor/reactor.hpp"
#include "runtime/transport/bootstrap.hpp"
#include "runtime/transport/transport_poller.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"
#include "runtime/wire/frame_check.hpp"

using namespace tokenrouter;

namespace {

std::unique_ptr<bootstrap> job;

struct whole_run {
  void setup() {
    job = std::move(bootstrap::start(detect_launch_environment()).value());
    BOOST_REQUIRE(job->ranks() > 1);
  }
  void teardown() { job->finalise(5000, 3); }
};

constexpr std::uint64_t deadline_us = 60'000'000;

struct mesh {
  std::unique_ptr<ucx_transport> carrier = std::move(ucx_transport::create(job->rank()).value());
  std::vector<std::uint32_t> peers;

  mesh() {
    const auto addresses = job->allgather(carrier->address());
    BOOST_REQUIRE(addresses.has_value());
    for (std::uint32_t r = 0; r < job->ranks(); ++r)
      if (r != job->rank().value) {
        peers.push_back(r);
        BOOST_REQUIRE(carrier->connect({r}, (*addresses)[r]).has_value());
      }
  }

  ~mesh() { meet(); }

  /// All ranks get here before any goes on.
  void meet() { BOOST_REQUIRE(job->allgather({}).has_value()); }

  bool run_until(const std::function<bool()>& done) {
    const auto end_us = monotonic_us() + deadline_us;
    while (!done()) {
      if (monotonic_us() > end_us)
        return false;
      carrier->progress();
    }
    return true;
  }

  result<void> send(std::uint32_t to, std::uint64_t sequence, std::size_t bytes) {
    std::vector<std::byte> payload(bytes);
    for (std::size_t i = 0; i < bytes; i += 97)
      payload[i] = static_cast<std::byte>(sequence + i);
    frame_header header;
    header.source_rank = job->rank().value;
    header.sequence = sequence;
    const auto made = make_frame(header, payload);
    return carrier->send({to}, made, std::move(payload));
  }
};

} // namespace

BOOST_TEST_GLOBAL_FIXTURE(whole_run);

BOOST_AUTO_TEST_CASE(every_rank_knows_its_place) {
  BOOST_TEST(job->rank().value < job->ranks());
  BOOST_TEST(job->ranks_on_host() == job->ranks());
  BOOST_TEST(job->local_rank() == job->rank().value);
  const std::vector<std::byte> mine(job->rank().value, static_cast<std::byte>(job->rank().value));
  const auto all = job->allgather(mine);
  BOOST_REQUIRE(all.has_value());
  for (std::uint32_t r = 0; r < job->ranks(); ++r)
    BOOST_TEST(((*all)[r] == std::vector<std::byte>(r, static_cast<std::byte>(r))));
}

BOOST_AUTO_TEST_CASE(frames_of_every_size_arrive_in_order_both_ways) {
  mesh here;
  const std::vector<std::size_t> sizes{0,    1,       40,    100,      1000, 8000,      8192,
                                       8193, 9000,    65536, 1u << 20, 5,    32u << 20, 0,
                                       7,    300'000, 12,    8500,     1};
  std::map<std::uint32_t, std::uint64_t> seen;
  here.carrier->on_frame([&](rank_id from, const frame_header& header, auto payload) {
    BOOST_TEST(check_frame(header, payload).has_value());
    BOOST_TEST(header.source_rank == from.value);
    BOOST_TEST(header.sequence == seen[from.value] + 1);
    BOOST_TEST(payload.size() == sizes[seen[from.value]++]);
  });
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (const auto r : here.peers)
      BOOST_TEST(here.send(r, i + 1, sizes[i]).has_value());
  BOOST_TEST(here.run_until([&] {
    for (const auto r : here.peers)
      if (seen[r] < sizes.size())
        return false;
    return here.carrier->pending_sends() == 0;
  }));
}

BOOST_AUTO_TEST_CASE(a_flood_beyond_every_queue_stays_in_order) {
  constexpr std::uint64_t frames = 20'000;
  mesh here;
  std::map<std::uint32_t, std::uint64_t> seen;
  bool in_order = true;
  here.carrier->on_frame([&](rank_id from, const frame_header& header, auto payload) {
    in_order = in_order && header.sequence == ++seen[from.value] && payload.size() == 100;
  });
  for (std::uint64_t i = 1; i <= frames; ++i)
    for (const auto r : here.peers)
      BOOST_REQUIRE(here.send(r, i, 100).has_value());
  BOOST_TEST(here.run_until([&] {
    for (const auto r : here.peers)
      if (seen[r] < frames)
        return false;
    return here.carrier->pending_sends() == 0;
  }));
  BOOST_TEST(in_order);
}

BOOST_AUTO_TEST_CASE(a_sleeping_receiver_wakes) {
  constexpr std::uint64_t rounds = 300;
  mesh here;
  const auto me = job->rank().value;
  const auto next = (me + 1) % job->ranks();
  std::uint64_t seen = 0;
  // One frame runs round the ring; whoever does not have it sleeps.
  here.carrier->on_frame([&](rank_id, const frame_header& header, auto) {
    seen = header.sequence;
    const auto bytes = seen % 50 == 0 ? std::size_t{100'000} : std::size_t{64};
    if (seen < rounds * job->ranks())
      BOOST_TEST(here.send(next, seen + 1, bytes).has_value());
  });
  if (me == 0)
    BOOST_TEST(here.send(next, 1, 64).has_value());
  bool woke = true;
  const auto last = (rounds - 1) * job->ranks() + 1;
  while (woke && (seen < last || here.carrier->pending_sends() > 0)) {
    if (here.carrier->progress() > 0 || !here.carrier->prepare_sleep())
      continue;
    pollfd event{here.carrier->event_fd(), POLLIN, 0};
    woke = poll(&event, 1, 10'000) == 1;
  }
  BOOST_TEST(woke);
}

BOOST_AUTO_TEST_CASE(a_frame_wakes_a_sleeping_reactor) {
  constexpr std::uint64_t rounds = 300;
  mesh here;
  const auto me = job->rank().value;
  const auto next = (me + 1) % job->ranks();
  std::uint64_t seen = 0;
  here.carrier->on_frame([&](rank_id, const frame_header& header, auto) {
    seen = header.sequence;
    if (seen < rounds * job->ranks())
      BOOST_TEST(here.send(next, seen + 1, 64).has_value());
  });
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  transport_poller poller(*here.carrier);
  loop.attach(&poller);
  if (me == 0)
    BOOST_TEST(here.send(next, 1, 64).has_value());
  loop.run_until(
      [&] { return seen > (rounds - 1) * job->ranks() && here.carrier->pending_sends() == 0; });
  BOOST_TEST(loop.statistics().sleeps > 0u);
  loop.detach(&poller);
}

BOOST_AUTO_TEST_CASE(one_peer_is_forgotten_and_the_others_stay) {
  mesh here;
  const auto me = job->rank().value;
  std::set<std::uint32_t> seen;
  here.carrier->on_frame([&](rank_id from, auto...) { seen.insert(from.value); });
  if (me == 0)
    here.carrier->forget({1});
  here.meet();
  for (const auto r : here.peers) {
    const auto sent = here.send(r, 1, 10);
    BOOST_TEST(sent.has_value() == !(me == 0 && r == 1));
    BOOST_TEST(here.carrier->describe({r}).starts_with("ucx "));
  }
  std::set<std::uint32_t> expected(here.peers.begin(), here.peers.end());
  if (me == 0)
    expected.erase(1);
  if (me == 1)
    expected.erase(0);
  BOOST_TEST(here.run_until([&] { return seen == expected; }));
  for (int i = 0; i < 2000; ++i)
    here.carrier->progress();
  BOOST_TEST((seen == expected));
}

BOOST_AUTO_TEST_CASE(the_network_starts_and_stops_fifty_times) {
  for (int i = 0; i < 50; ++i) {
    mesh here;
    std::size_t seen = 0;
    here.carrier->on_frame([&](auto...) { ++seen; });
    for (const auto r : here.peers)
      BOOST_TEST(here.send(r, 1, i % 2 == 0 ? 100 : 100'000).has_value());
    BOOST_REQUIRE(here.run_until([&] { return seen == here.peers.size(); }));
    BOOST_REQUIRE(here.carrier->close(5000));
  }
}
