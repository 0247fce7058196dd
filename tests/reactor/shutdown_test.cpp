#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <caf/actor_system.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "runtime/reactor/reactor.hpp"
#include "runtime/reactor/spinning_blocking_actor.hpp"

using namespace tokenrouter;

namespace {

/// Answers every int until it is told to exit.
class echo : public spinning_blocking_actor {
 public:
  using spinning_blocking_actor::spinning_blocking_actor;

  void act() override {
    bool running = true;
    receive_while(running)([](int n) { return n; }, [&](caf::exit_msg&) { running = false; });
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(the_end_of_an_actor_with_its_own_thread_wakes_the_loop) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  {
    auto model = system.spawn<echo, caf::detached>(0u);
    loop.wake_at_exit(model);
    caf::anon_send_exit(model, caf::exit_reason::user_shutdown);
  }
  // Without the wake-up this would sleep for ever: there is no timer and no poller.
  loop.run_until_no_actors();
  BOOST_TEST(system.registry().running() == 0u);
}

BOOST_AUTO_TEST_CASE(a_system_starts_and_stops_a_hundred_times_in_the_right_order) {
  for (int i = 0; i < 100; ++i) {
    std::atomic<int> answers{0};
    reactor_config config;
    caf::actor_system system(config);
    auto& loop = reactor::of(system);
    {
      auto model = system.spawn<echo, caf::detached>(i % 2 == 0 ? 0u : 50u);
      loop.wake_at_exit(model);
      auto asker = system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
        for (int k = 0; k < 50; ++k)
          self->send(model, k);
        self->delayed_send(self, std::chrono::hours(1), std::string("never"));
        return {[&](int) { ++answers; }, [](const std::string&) {}};
      });
      std::thread outside([&] {
        for (int k = 0; k < 200; ++k)
          caf::anon_send(asker, k);
      });
      outside.join();
      loop.run_until([&] { return answers >= 250; });
      caf::anon_send_exit(asker, caf::exit_reason::user_shutdown);
      caf::anon_send_exit(model, caf::exit_reason::user_shutdown);
    }
    loop.run_until_no_actors();
    BOOST_TEST(answers == 250);
  }
}

BOOST_AUTO_TEST_CASE(queued_mail_and_pending_timers_are_dropped_with_the_system) {
  struct probe {
    explicit probe(int& alive) : alive_(alive) { ++alive_; }
    ~probe() { --alive_; }
    int& alive_;
  };
  int alive = 0;
  {
    reactor_config config;
    caf::actor_system system(config);
    system.await_actors_before_shutdown(false);
    auto who = system.spawn(
        [kept = std::make_shared<probe>(alive)](caf::event_based_actor* self) -> caf::behavior {
          self->delayed_send(self, std::chrono::hours(1), 0);
          return {[kept](int) {}};
        });
    reactor::of(system).run_ready();
    for (int i = 0; i < 100; ++i)
      caf::anon_send(who, i);
    BOOST_TEST(alive == 1);
  }
  BOOST_TEST(alive == 0);
}

BOOST_AUTO_TEST_CASE(an_actor_with_its_own_thread_may_send_while_the_system_stops) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> stop{false};
    std::atomic<int> sent{0};
    std::thread stopper;
    {
      reactor_config config;
      caf::actor_system system(config);
      system.await_actors_before_shutdown(false);
      auto sink =
          system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
      system.spawn<caf::detached>([&, sink](caf::blocking_actor* self) {
        while (!stop) {
          self->send(sink, 1);
          ++sent;
        }
      });
      reactor::of(system).run_until([&] { return sent >= 10; });
      stopper = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        stop = true;
      });
    }
    stopper.join();
    BOOST_TEST(sent >= 10);
  }
}

BOOST_AUTO_TEST_CASE(cancelling_all_timers_releases_their_actors) {
  reactor_config config{true};
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  caf::actor_addr address;
  {
    auto who = system.spawn([](caf::event_based_actor* self) -> caf::behavior {
      self->delayed_send(self, std::chrono::hours(1), 0);
      return {[](int) {}};
    });
    address = who.address();
    caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  }
  loop.run_ready();
  BOOST_TEST((caf::actor_cast<caf::strong_actor_ptr>(address) != nullptr));
  loop.clock().cancel_all();
  BOOST_TEST((caf::actor_cast<caf::strong_actor_ptr>(address) == nullptr));
  BOOST_TEST(!loop.next_timer_us().has_value());
}
