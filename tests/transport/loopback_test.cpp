#include <boost/test/unit_test.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <caf/actor_system.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/reactor/reactor.hpp"
#include "runtime/transport/loopback.hpp"
#include "runtime/transport/transport_poller.hpp"
#include "runtime/wire/frame_check.hpp"

using namespace tokenrouter;

namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

frame_header numbered(std::uint64_t sequence, std::span<const std::byte> payload) {
  frame_header header;
  header.sequence = sequence;
  return make_frame(header, payload);
}

result<void> send_text(transport& from, rank_id to, std::uint64_t sequence, std::string_view text) {
  auto payload = bytes_of(text);
  const auto header = numbered(sequence, payload);
  return from.send(to, header, std::move(payload));
}

} // namespace

BOOST_AUTO_TEST_CASE(loopback_hands_over_frames_in_order_and_only_in_progress) {
  loopback_network network(3);
  std::vector<std::uint64_t> seen;
  network.endpoint({2}).on_frame(
      [&](rank_id from, const frame_header& header, std::span<const std::byte> payload) {
        BOOST_TEST(from.value == 0u);
        BOOST_TEST(check_frame(header, payload).has_value());
        seen.push_back(header.sequence);
      });
  for (std::uint64_t i = 1; i <= 5; ++i)
    BOOST_TEST(send_text(network.endpoint({0}), {2}, i, std::string(i, 'x')).has_value());
  BOOST_TEST(seen.empty());
  BOOST_TEST(!network.endpoint({2}).prepare_sleep());
  BOOST_TEST(network.endpoint({1}).progress() == 0u);
  BOOST_TEST(network.endpoint({2}).progress() == 5u);
  BOOST_TEST(seen == (std::vector<std::uint64_t>{1, 2, 3, 4, 5}), boost::test_tools::per_element());
  BOOST_TEST(network.endpoint({2}).progress() == 0u);
  BOOST_TEST(network.endpoint({2}).prepare_sleep());
}

BOOST_AUTO_TEST_CASE(loopback_refuses_what_has_no_way_or_is_too_long) {
  loopback_network network(2);
  auto& here = network.endpoint({0});
  BOOST_TEST((send_text(here, {2}, 1, "").error().code == errc::unavailable));
  BOOST_TEST((send_text(here, {0}, 1, "").error().code == errc::unavailable));
  BOOST_TEST(
      (here.send({1}, {}, std::vector<std::byte>(limits::frame_bytes_max + 1)).error().code ==
       errc::capacity));
}

BOOST_AUTO_TEST_CASE(loopback_drops_a_frame_whose_size_and_header_disagree) {
  loopback_network network(2);
  int seen = 0;
  network.endpoint({1}).on_frame([&](auto...) { ++seen; });
  BOOST_TEST(network.endpoint({0}).send({1}, numbered(1, {}), bytes_of("more")).has_value());
  BOOST_TEST(network.endpoint({1}).progress() == 1u);
  BOOST_TEST(seen == 0);
}

BOOST_AUTO_TEST_CASE(loopback_forgets_a_peer_both_ways) {
  loopback_network network(2);
  int seen = 0;
  network.endpoint({1}).on_frame([&](auto...) { ++seen; });
  BOOST_TEST(send_text(network.endpoint({0}), {1}, 1, "under way").has_value());
  network.endpoint({1}).forget({0});
  network.endpoint({1}).progress();
  BOOST_TEST(seen == 0);
  BOOST_TEST((send_text(network.endpoint({1}), {0}, 1, "").error().code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(a_frame_sink_may_answer_at_once) {
  loopback_network network(2);
  int seen = 0;
  for (const std::uint32_t r : {0u, 1u})
    network.endpoint({r}).on_frame([&, r](rank_id from, const frame_header& header, auto) {
      if (++seen < 10)
        BOOST_TEST(send_text(network.endpoint({r}), from, header.sequence + 1, "").has_value());
    });
  BOOST_TEST(send_text(network.endpoint({0}), {1}, 1, "").has_value());
  while (network.endpoint({0}).progress() + network.endpoint({1}).progress() > 0) {
  }
  BOOST_TEST(seen == 10);
}

BOOST_AUTO_TEST_CASE(a_loopback_frame_wakes_a_sleeping_reactor) {
  constexpr std::uint64_t rounds = 200;
  loopback_network network(2);
  // The other side, in a reactor and a thread of its own, sends everything back.
  std::atomic<bool> stop{false};
  std::atomic<reactor*> other{nullptr};
  std::thread echo([&] {
    reactor_config config;
    caf::actor_system system(config);
    auto& there = network.endpoint({1});
    there.on_frame([&](rank_id from, const frame_header& header, auto) {
      static_cast<void>(send_text(there, from, header.sequence, ""));
    });
    transport_poller poller(there);
    auto& loop = reactor::of(system);
    loop.attach(&poller);
    other = &loop;
    loop.run_until([&] { return stop.load(); });
    loop.detach(&poller);
  });
  std::uint64_t seen = 0;
  {
    reactor_config config;
    caf::actor_system system(config);
    auto& here = network.endpoint({0});
    here.on_frame([&](rank_id from, const frame_header& header, auto) {
      seen = header.sequence;
      if (seen < rounds)
        static_cast<void>(send_text(here, from, seen + 1, ""));
    });
    transport_poller poller(here);
    auto& loop = reactor::of(system);
    loop.attach(&poller);
    BOOST_TEST(send_text(here, {1}, 1, "").has_value());
    loop.run_until([&] { return seen == rounds; });
    BOOST_TEST(loop.statistics().sleeps > 0u);
    loop.detach(&poller);
  }
  stop = true;
  other.load()->wake();
  echo.join();
  BOOST_TEST(seen == rounds);
}
