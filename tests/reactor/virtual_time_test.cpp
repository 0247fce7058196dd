#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "runtime/reactor/reactor.hpp"

using namespace tokenrouter;
using us = std::chrono::microseconds;

namespace {

struct world {
  reactor_config config{true};
  caf::actor_system system{config};
  reactor& loop = reactor::of(system);
};

} // namespace

BOOST_AUTO_TEST_CASE(virtual_time_stands_still_until_it_is_advanced) {
  world w;
  const auto start_us = w.loop.now_us();
  BOOST_TEST(start_us > 0u);
  w.loop.run_ready();
  BOOST_TEST(w.loop.now_us() == start_us);
  BOOST_TEST(!w.loop.next_timer_us().has_value());
  w.loop.advance_to(start_us + 7);
  BOOST_TEST(w.loop.now_us() == start_us + 7);
}

BOOST_AUTO_TEST_CASE(timers_of_a_loop_that_stood_still_fire_late) {
  world w;
  std::vector<std::uint64_t> seen;
  auto who = w.system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, us(10), 1);
    return {[&](int) { seen.push_back(w.loop.now_us()); }};
  });
  const auto start_us = w.loop.now_us();
  w.loop.run_ready();
  w.loop.stand_still_until(start_us + 50);
  w.loop.run_ready();
  BOOST_TEST(w.loop.now_us() == start_us + 50);
  w.loop.advance_to(start_us + 50);
  BOOST_TEST((seen == std::vector{start_us + 50}));
  caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  w.loop.run_ready();
}

BOOST_AUTO_TEST_CASE(virtual_timers_fire_by_due_time_and_then_by_insertion) {
  world w;
  std::vector<std::pair<std::uint64_t, int>> seen;
  auto who = w.system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, us(20), 4);
    self->delayed_send(self, us(10), 1);
    self->delayed_send(self, us(20), 5);
    self->delayed_send(self, us(10), 2);
    return {[&](int n) { seen.emplace_back(w.loop.now_us(), n); }};
  });
  const auto start_us = w.loop.now_us();
  w.loop.run_ready();
  BOOST_TEST(seen.empty());
  BOOST_TEST(w.loop.next_timer_us().value() == start_us + 10);
  w.loop.advance_to(start_us + 9);
  BOOST_TEST(seen.empty());
  w.loop.advance_to(start_us + 100);
  const std::vector<std::pair<std::uint64_t, int>> expected{
      {start_us + 10, 1}, {start_us + 10, 2}, {start_us + 20, 4}, {start_us + 20, 5}};
  BOOST_TEST((seen == expected));
  BOOST_TEST(w.loop.now_us() == start_us + 100);
  caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  w.loop.run_ready();
}

BOOST_AUTO_TEST_CASE(a_chain_of_timers_runs_through_one_advance) {
  world w;
  int ticks = 0;
  auto who = w.system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, us(1), 0);
    return {[&, self](int n) {
      ++ticks;
      self->delayed_send(self, us(1), n);
    }};
  });
  w.loop.run_ready();
  w.loop.advance_to(w.loop.now_us() + 1000);
  BOOST_TEST(ticks == 1000);
  caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  w.loop.run_ready();
}

BOOST_AUTO_TEST_CASE(a_request_times_out_in_virtual_time) {
  world w;
  caf::error seen;
  auto mute = w.system.spawn([](caf::event_based_actor* self) -> caf::behavior {
    return {[self](int) { return self->make_response_promise<int>(); }};
  });
  w.system.spawn([&](caf::event_based_actor* self) {
    self->request(mute, us(50), 1).then([](int) {}, [&](const caf::error& e) { seen = e; });
  });
  w.loop.run_ready();
  w.loop.advance_to(w.loop.now_us() + 49);
  BOOST_TEST(!static_cast<bool>(seen));
  w.loop.advance_to(w.loop.now_us() + 1);
  BOOST_TEST((seen == caf::sec::request_timeout));
  caf::anon_send_exit(mute, caf::exit_reason::user_shutdown);
  mute = nullptr;
  w.loop.run_ready();
}

namespace {

/// Two actor systems in one thread that pass a ball with random delays; returns what happened.
std::string play(unsigned seed) {
  std::string trace;
  std::mt19937 random(seed);
  world a, b;
  std::vector<world*> worlds{&a, &b};
  std::vector<std::pair<world*, int>> in_transit;
  auto start = [&](world& here, world& there, const char* name) {
    return here.system.spawn([&, name](caf::event_based_actor* self) -> caf::behavior {
      return {[&, self, name](int n) {
        trace += name + std::to_string(n) + '@' + std::to_string(here.loop.now_us()) + ' ';
        if (n % 3 == 0)
          self->delayed_send(self, us(random() % 9), n + 1);
        else if (n < 400)
          in_transit.emplace_back(&there, n + 1);
      }};
    });
  };
  auto at_a = start(a, b, "a");
  auto at_b = start(b, a, "b");
  for (int i = 0; i < 5; ++i)
    caf::anon_send(at_a, i);
  for (;;) {
    std::size_t ran = 0;
    for (auto* w : worlds)
      ran += w->loop.run_ready();
    for (const auto& [to, n] : std::exchange(in_transit, {}))
      caf::anon_send(to == &a ? at_a : at_b, n), ++ran;
    if (ran > 0)
      continue;
    std::optional<std::uint64_t> next_us;
    for (auto* w : worlds)
      if (const auto due_us = w->loop.next_timer_us(); due_us && (!next_us || *due_us < *next_us))
        next_us = due_us;
    if (!next_us)
      break;
    for (auto* w : worlds)
      w->loop.advance_to(*next_us);
  }
  caf::anon_send_exit(at_a, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(at_b, caf::exit_reason::user_shutdown);
  a.loop.run_ready();
  b.loop.run_ready();
  return trace;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_seed_gives_one_trace) {
  const auto first = play(1);
  BOOST_TEST(std::count(first.begin(), first.end(), ' ') > 1000);
  for (int i = 0; i < 5; ++i)
    BOOST_TEST(play(1) == first);
  BOOST_TEST(play(2) != first);
}
