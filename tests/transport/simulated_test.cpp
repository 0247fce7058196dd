#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/core/log.hpp"
#include "runtime/transport/simulated.hpp"
#include "runtime/wire/frame_check.hpp"

using namespace tokenrouter;

namespace {

struct arrival {
  std::uint64_t at_us;
  std::uint64_t sequence;
  bool sound;
  friend bool operator==(const arrival&, const arrival&) = default;
};

/// Sends `frames` frames from rank 0 to rank 1, one a microsecond, and returns what arrives.
std::vector<arrival> play(simulated_network& network, std::uint64_t frames) {
  std::vector<arrival> seen;
  auto& there = network.endpoint({1});
  there.on_frame([&](rank_id, const frame_header& header, std::span<const std::byte> payload) {
    seen.push_back({network.now_us(), header.sequence, check_frame(header, payload).has_value()});
  });
  for (std::uint64_t i = 1; i <= frames; ++i) {
    std::vector<std::byte> payload(16, static_cast<std::byte>(i));
    frame_header header;
    header.sequence = i;
    const auto made = make_frame(header, payload);
    BOOST_TEST(network.endpoint({0}).send({1}, made, std::move(payload)).has_value());
    network.advance_to(network.now_us() + 1);
    there.progress();
  }
  while (const auto next_us = network.next_arrival_us()) {
    network.advance_to(*next_us);
    there.progress();
  }
  return seen;
}

std::vector<std::uint64_t> sequences(const std::vector<arrival>& seen) {
  std::vector<std::uint64_t> result;
  for (const auto& frame : seen)
    result.push_back(frame.sequence);
  return result;
}

constexpr std::uint64_t frames = 1000;

} // namespace

BOOST_AUTO_TEST_CASE(a_network_without_faults_keeps_order_and_its_delays) {
  simulated_network network(2, 1, {.delay_min_us = 3, .delay_max_us = 40});
  const auto seen = play(network, frames);
  BOOST_TEST(seen.size() == frames);
  const auto order = sequences(seen);
  BOOST_TEST(std::is_sorted(order.begin(), order.end()));
  for (const auto& frame : seen) {
    BOOST_TEST(frame.sound);
    BOOST_TEST(frame.at_us >= frame.sequence + 3);
    BOOST_TEST(frame.at_us <= frame.sequence + 40);
  }
}

BOOST_AUTO_TEST_CASE(one_seed_gives_one_run_of_the_network) {
  const network_faults faults{.delay_min_us = 1,
                              .delay_max_us = 30,
                              .drop_share = 0.1f,
                              .duplicate_share = 0.1f,
                              .reorder_share = 0.1f,
                              .corrupt_share = 0.1f};
  const auto run = [&](std::uint64_t seed) {
    simulated_network network(2, seed, faults);
    return play(network, frames);
  };
  const auto first = run(7);
  BOOST_TEST((run(7) == first));
  BOOST_TEST((run(8) != first));
}

BOOST_AUTO_TEST_CASE(each_fault_happens_about_as_often_as_asked_and_nothing_else_does) {
  spdlog::set_level(spdlog::level::err); // every frame with a spoiled length is worth a warning
  const auto run = [](network_faults faults) {
    simulated_network network(2, 3, faults);
    return play(network, frames);
  };
  const auto dropped = run({.drop_share = 0.2f});
  BOOST_TEST(dropped.size() > 700u);
  BOOST_TEST(dropped.size() < 900u);
  const auto doubled = run({.duplicate_share = 0.2f});
  BOOST_TEST(doubled.size() > 1100u);
  BOOST_TEST(doubled.size() < 1300u);
  const auto spoiled = run({.corrupt_share = 0.2f});
  const auto sound =
      std::count_if(spoiled.begin(), spoiled.end(), [](const auto& frame) { return frame.sound; });
  BOOST_TEST(sound > 700);
  BOOST_TEST(sound < 900);
  // A frame whose length was hit does not arrive, all others do.
  BOOST_TEST(spoiled.size() > 970u);
  const auto shuffled = run({.delay_min_us = 1, .delay_max_us = 50, .reorder_share = 0.5f});
  auto order = sequences(shuffled);
  BOOST_TEST(!std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint64_t i = 0; i < frames; ++i)
    BOOST_TEST(order[i] == i + 1);
}

BOOST_AUTO_TEST_CASE(a_cut_loses_frames_both_ways_until_it_heals) {
  simulated_network network(3, 1, {.delay_min_us = 10, .delay_max_us = 10});
  std::vector<std::uint32_t> seen;
  for (std::uint32_t r = 0; r < 3; ++r)
    network.endpoint({r}).on_frame([&, r](auto...) { seen.push_back(r); });
  const auto send = [&](std::uint32_t from, std::uint32_t to) {
    BOOST_TEST(network.endpoint({from}).send({to}, make_frame({}, {}), {}).has_value());
  };
  const auto settle = [&] {
    network.advance_to(network.now_us() + 100);
    for (std::uint32_t r = 0; r < 3; ++r)
      network.endpoint({r}).progress();
    return std::exchange(seen, {});
  };
  send(0, 1);
  network.cut({1}, {0});
  send(0, 1);
  send(1, 0);
  send(0, 2);
  BOOST_TEST(settle() == std::vector<std::uint32_t>{2}, boost::test_tools::per_element());
  BOOST_TEST(network.lost_frames() == 3u);
  network.heal({0}, {1});
  send(0, 1);
  BOOST_TEST(settle() == std::vector<std::uint32_t>{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_dead_rank_neither_hears_nor_speaks_and_senders_do_not_notice) {
  simulated_network network(2, 1);
  int seen = 0;
  for (std::uint32_t r = 0; r < 2; ++r)
    network.endpoint({r}).on_frame([&](auto...) { ++seen; });
  const auto exchange = [&] {
    BOOST_TEST(network.endpoint({0}).send({1}, make_frame({}, {}), {}).has_value());
    BOOST_TEST(network.endpoint({1}).send({0}, make_frame({}, {}), {}).has_value());
    network.advance_to(network.now_us() + 10);
    network.endpoint({0}).progress();
    network.endpoint({1}).progress();
    return std::exchange(seen, 0);
  };
  BOOST_TEST(exchange() == 2);
  network.kill({1});
  BOOST_TEST(exchange() == 0);
  network.revive({1});
  BOOST_TEST(exchange() == 2);
}
