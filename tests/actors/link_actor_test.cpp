#include <boost/test/unit_test.hpp>

#include <array>
#include <memory>
#include <numeric>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/link.hpp"
#include "runtime/core/log.hpp"
#include "runtime/reactor/reactor.hpp"
#include "runtime/transport/simulated.hpp"
#include "runtime/transport/transport_poller.hpp"
#include "runtime/wire/frame_check.hpp"
#include "tests/actors/link_pair.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr std::uint64_t heartbeat_us = 50'000;
constexpr std::uint64_t timeout_us = 500'000;

struct seen {
  std::vector<std::uint64_t> numbers;
  bool left = false;
  std::string down; ///< why; empty: it is not
  int closed = 0;
};

link_outlet::behavior_type outlet(link_outlet::pointer, seen* log) {
  return {
      [log](const wire_payload& x) { log->numbers.push_back(number_in(x.bytes)); },
      [log](const peer_left&) { log->left = true; },
  };
}

link_observer::behavior_type observer(link_observer::pointer, seen* log) {
  return {
      [log](const peer_down& x) { log->down = x.why; },
  };
}

/// One rank that is nothing but a link.
class end_point {
 public:
  end_point(simulated_network& network, rank_id self, hello greeting)
      : wire_(network.endpoint(self)), poller_(wire_) {
    outlet_ = system_.spawn(outlet, &log);
    observer_ = system_.spawn(observer, &log);
    link_options options{self,         {1 - self.value}, greeting,
                         heartbeat_us, timeout_us,       &wire_,
                         outlet_,      observer_,        [this] { return loop().now_us(); }};
    options.on_closed = [this] { ++log.closed; };
    link_ = system_.spawn(tokenrouter::link, std::move(options));
    wire_.on_frame([this](rank_id, const frame_header& header, auto payload) {
      caf::anon_send(link_, incoming_frame{header, {payload.begin(), payload.end()}});
    });
    loop().attach(&poller_);
  }

  ~end_point() {
    for (const auto& who :
         {caf::actor_cast<caf::actor>(link_), caf::actor_cast<caf::actor>(outlet_),
          caf::actor_cast<caf::actor>(observer_)})
      caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    link_ = nullptr;
    outlet_ = nullptr;
    observer_ = nullptr;
    loop().run_ready();
    loop().detach(&poller_);
  }

  void send(std::uint64_t number) { caf::anon_send(link_, wire_payload{{}, payload_of(number)}); }
  void close() { caf::anon_send(link_, caf::close_atom::value); }
  reactor& loop() { return reactor::of(system_); }

  seen log;

 private:
  reactor_config config_{true};
  caf::actor_system system_{config_};
  transport& wire_;
  transport_poller poller_;
  link_outlet outlet_;
  link_observer observer_;
  link_actor link_;
};

class link_bench {
 public:
  explicit link_bench(network_faults faults = {}, hello mine = {}, hello theirs = {})
      : network(2, 11, faults) {
    spdlog::set_level(spdlog::level::err); // this wire is bad on purpose
    ends[0] = std::make_unique<end_point>(network, rank_id{0}, std::move(mine));
    ends[1] = std::make_unique<end_point>(network, rank_id{1}, std::move(theirs));
  }

  void run_for(std::uint64_t us) {
    for (const auto until_us = now_us_ + us; now_us_ < until_us;) {
      while (ends[0]->loop().run_ready() + ends[1]->loop().run_ready() > 0)
        ;
      auto next_us = std::min(until_us, network.next_arrival_us().value_or(until_us));
      for (auto& one : ends)
        next_us = std::min(next_us, one->loop().next_timer_us().value_or(until_us));
      now_us_ = std::max(now_us_, next_us);
      network.advance_to(now_us_);
      for (auto& one : ends)
        one->loop().advance_to(now_us_);
    }
    while (ends[0]->loop().run_ready() + ends[1]->loop().run_ready() > 0)
      ;
  }

  /// One side is stopped for so long; frames are on their way until it goes on.
  void stop(std::size_t side, std::uint64_t us) {
    for (const auto until_us = now_us_ + us; now_us_ < until_us;) {
      auto& other = ends[1 - side]->loop();
      while (other.run_ready() > 0)
        ;
      now_us_ = std::min(until_us, other.next_timer_us().value_or(until_us));
      other.advance_to(now_us_);
    }
    ends[side]->loop().stand_still_until(now_us_);
  }

  seen& log(std::size_t side) { return ends[side]->log; }

  simulated_network network;
  std::array<std::unique_ptr<end_point>, 2> ends;

 private:
  std::uint64_t now_us_ = 1;
};

const network_faults bad_wire{.delay_min_us = 1,
                              .delay_max_us = 500,
                              .drop_share = 0.1f,
                              .duplicate_share = 0.1f,
                              .reorder_share = 0.5f,
                              .corrupt_share = 0.1f};

} // namespace

BOOST_AUTO_TEST_CASE(links_over_a_bad_wire_deliver_all_in_order_and_then_close) {
  link_bench bench(bad_wire);
  constexpr std::uint64_t total = 3000; // more than a window
  for (std::uint64_t i = 1; i <= total; ++i)
    for (auto& one : bench.ends)
      one->send(i);
  bench.run_for(3'000'000);
  for (std::uint64_t i = total + 1; i <= 2 * total; ++i)
    bench.ends[0]->send(i);
  bench.ends[0]->close();
  bench.run_for(3'000'000);
  bench.ends[1]->close();
  bench.run_for(3'000'000);
  std::vector<std::uint64_t> expected(2 * total);
  std::iota(expected.begin(), expected.end(), 1);
  BOOST_TEST(bench.log(1).numbers == expected, boost::test_tools::per_element());
  BOOST_TEST(bench.log(1).left);
  expected.resize(total);
  BOOST_TEST(bench.log(0).numbers == expected, boost::test_tools::per_element());
  for (std::size_t side : {0u, 1u}) {
    BOOST_TEST(bench.log(side).closed == 1);
    BOOST_TEST(bench.log(side).down == "");
  }
}

BOOST_AUTO_TEST_CASE(an_idle_link_sends_heartbeats_and_nothing_else) {
  link_bench bench;
  bench.run_for(1000);
  const auto frames = bench.network.sent_frames();
  const auto timers = bench.ends[0]->loop().statistics().timers;
  bench.run_for(heartbeat_us * 20);
  BOOST_TEST(bench.network.sent_frames() - frames == 40u);
  BOOST_TEST(bench.ends[0]->loop().statistics().timers - timers <= 22u); // two were set before
}

BOOST_AUTO_TEST_CASE(a_wire_that_damages_everything_is_silence) {
  link_bench bench({.corrupt_share = 1.0f});
  bench.run_for(timeout_us - heartbeat_us);
  BOOST_TEST(bench.log(0).down == "");
  bench.run_for(2 * heartbeat_us);
  for (std::size_t side : {0u, 1u}) {
    BOOST_TEST(bench.log(side).down.find("no sign of life") != std::string::npos);
    BOOST_TEST(bench.log(side).down.find("came damaged") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_dies_is_reported_once_and_ends_a_close) {
  link_bench bench;
  bench.run_for(1000);
  bench.network.kill({1});
  bench.ends[0]->send(1);
  bench.ends[0]->close();
  bench.run_for(timeout_us - 2 * heartbeat_us);
  BOOST_TEST(bench.log(0).down == "");
  BOOST_TEST(bench.log(0).closed == 0);
  bench.run_for(4 * heartbeat_us);
  BOOST_TEST(bench.log(0).down.find("no sign of life") != std::string::npos);
  BOOST_TEST(bench.log(0).closed == 1);
}

BOOST_AUTO_TEST_CASE(a_rank_that_was_stopped_finds_its_peers_alive) {
  link_bench bench;
  bench.run_for(1000);
  bench.ends[1]->send(1); // not acknowledged before it is stopped
  bench.stop(1, 3 * timeout_us);
  bench.run_for(timeout_us - 2 * heartbeat_us);
  BOOST_TEST(bench.log(1).down == "");
  BOOST_TEST(bench.log(0).down.find("no sign of life") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ranks_that_read_different_configurations_refuse_each_other) {
  link_bench bench(bad_wire, {1, 5, "a"}, {2, 5, "b"});
  bench.ends[0]->send(1);
  bench.run_for(timeout_us / 2);
  BOOST_TEST(bench.log(0).down.find("configuration") != std::string::npos);
  BOOST_TEST(bench.log(1).numbers.empty());
}

BOOST_AUTO_TEST_CASE(a_sound_frame_of_another_version_ends_the_link_at_once_by_name) {
  link_bench bench;
  bench.run_for(1000);
  frame_header header;
  header.version += 1;
  BOOST_TEST(bench.network.endpoint({1}).send({0}, make_frame(header, {}), {}).has_value());
  bench.run_for(100);
  BOOST_TEST(bench.log(0).down.find("protocol version") != std::string::npos);
}
