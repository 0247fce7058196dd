#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <caf/actor_ostream.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/core/check.hpp"
#include "runtime/reactor/reactor.hpp"

using namespace tokenrouter;

namespace {

/// A poller over an eventfd: each write to it is one event.
class bell : public poller {
 public:
  ~bell() override { close(fd_); }

  void ring() {
    const std::uint64_t one = 1;
    check(write(fd_, &one, sizeof one) == static_cast<ssize_t>(sizeof one), "eventfd is full");
  }

  std::size_t poll() override {
    ++polls;
    std::uint64_t count = 0;
    if (read(fd_, &count, sizeof count) != static_cast<ssize_t>(sizeof count))
      return 0;
    rung += count;
    return count;
  }

  int event_fd() const override { return fd_; }

  bool prepare_sleep() override {
    ++sleeps_asked;
    return sleeps_refused == 0 || sleeps_refused-- == 0;
  }

  std::size_t polls = 0;
  std::size_t rung = 0;
  std::atomic<std::size_t> sleeps_asked{0};
  std::size_t sleeps_refused = 0;

 private:
  const int fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
};

} // namespace

BOOST_AUTO_TEST_CASE(all_event_based_actors_run_in_the_thread_of_the_loop) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  std::vector<std::thread::id> threads;
  int rounds = 0;
  auto pong = system.spawn([&](caf::event_based_actor*) -> caf::behavior {
    return {[&](int n) {
      threads.push_back(std::this_thread::get_id());
      return n + 1;
    }};
  });
  auto ping = system.spawn([&, pong](caf::event_based_actor* self) -> caf::behavior {
    self->send(pong, 0);
    return {[&, self, pong](int n) {
      threads.push_back(std::this_thread::get_id());
      if (++rounds == 100)
        self->send_exit(pong, caf::exit_reason::user_shutdown);
      else
        self->send(pong, n);
      if (rounds == 100)
        self->quit();
    }};
  });
  BOOST_TEST(threads.empty());
  loop.run_until_no_actors();
  BOOST_TEST(rounds == 100);
  BOOST_TEST(threads.size() == 200u);
  for (const auto id : threads)
    BOOST_TEST((id == std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(a_message_from_another_thread_wakes_a_sleeping_loop) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  int seen = 0;
  std::atomic<int> handled{0};
  {
    auto sink = system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
      return {[&, self](int n) {
        seen += n;
        handled = seen;
        if (seen == 50)
          self->quit();
      }};
    });
    // Each message waits for the one before: the loop goes to sleep in between.
    std::thread sender([&] {
      for (int i = 0; i < 50; ++i) {
        caf::anon_send(sink, 1);
        while (handled < i + 1)
          std::this_thread::yield();
      }
    });
    loop.run_until_no_actors();
    sender.join();
  }
  BOOST_TEST(seen == 50);
}

BOOST_AUTO_TEST_CASE(an_idle_loop_sleeps_until_it_is_woken) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  std::atomic<bool> done{false};
  std::atomic<int> turns{0};
  // Waits until the loop stands still, or gives up on that.
  std::thread waker([&] {
    for (int tries = 0, seen = 0; tries < 100 && (seen == 0 || seen != turns); ++tries) {
      seen = turns;
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    done = true;
    loop.wake();
  });
  loop.run_until([&] {
    ++turns;
    return done.load();
  });
  waker.join();
  BOOST_TEST(loop.statistics().sleeps > 0u);
  BOOST_TEST(turns < 20);
}

BOOST_AUTO_TEST_CASE(a_wake_before_the_loop_sleeps_is_not_lost) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  for (int i = 0; i < 2000; ++i) {
    std::atomic<bool> done{false};
    std::thread waker([&] {
      done = true;
      loop.wake();
    });
    loop.run_until([&] { return done.load(); });
    waker.join();
    BOOST_TEST(done);
  }
}

BOOST_AUTO_TEST_CASE(a_readable_poller_wakes_the_loop_and_is_polled) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  bell source;
  loop.attach(&source);
  std::thread ringer([&] {
    // Each ring comes when the loop is about to sleep, or sleeps.
    for (std::size_t i = 0, seen = 0; i < 20; ++i) {
      while (source.sleeps_asked == seen)
        std::this_thread::yield();
      seen = source.sleeps_asked;
      source.ring();
    }
  });
  loop.run_until([&] { return source.rung == 20; });
  ringer.join();
  loop.detach(&source);
  const auto polls = source.polls;
  loop.run_ready();
  BOOST_TEST(source.polls == polls);
}

BOOST_AUTO_TEST_CASE(the_loop_polls_again_when_a_poller_refuses_sleep) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  bell source;
  source.sleeps_refused = 10;
  loop.attach(&source);
  loop.run_until([&] { return source.sleeps_refused == 0; });
  BOOST_TEST(loop.statistics().sleeps == 0u);
  BOOST_TEST(source.polls >= 10u);
  loop.detach(&source);
}

BOOST_AUTO_TEST_CASE(the_loop_spins_only_while_something_is_in_flight) {
  struct row {
    spin_policy policy;
    bool held;
    bool sleeps;
  };
  for (const auto& [policy, held, sleeps] :
       {row{spin_policy::never, false, true}, row{spin_policy::never, true, true},
        row{spin_policy::while_in_flight, false, true},
        row{spin_policy::while_in_flight, true, false}}) {
    reactor_config config;
    caf::actor_system system(config);
    auto& loop = reactor::of(system);
    loop.set_spin(policy);
    if (held)
      loop.hold_awake();
    std::atomic<bool> over{false};
    std::thread waker([&] {
      while (!over) {
        loop.wake();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    int turns = 0;
    loop.run_until([&] { return ++turns == 5000 || loop.statistics().sleeps > 0; });
    over = true;
    waker.join();
    BOOST_TEST((loop.statistics().sleeps > 0) == sleeps);
    BOOST_TEST((turns == 5000) == !sleeps);
    if (held)
      loop.release_awake();
    BOOST_TEST(loop.held() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(an_actor_that_floods_itself_does_not_starve_pollers) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  bell source;
  loop.attach(&source);
  std::uint64_t messages = 0;
  auto flood = system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    for (int i = 0; i < 1000; ++i)
      self->send(self, 1);
    return {[&, self](int n) {
      ++messages;
      self->send(self, n);
    }};
  });
  source.ring();
  loop.run_until([&] { return source.rung == 1; });
  BOOST_TEST(messages <= 64u * 32u);
  caf::anon_send_exit(flood, caf::exit_reason::kill);
  flood = nullptr;
  loop.run_until_no_actors();
  loop.detach(&source);
}

BOOST_AUTO_TEST_CASE(timers_fire_in_order_with_the_real_clock) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  std::vector<int> order;
  system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, std::chrono::milliseconds(300), 3);
    self->delayed_send(self, std::chrono::milliseconds(1), 1);
    self->delayed_send(self, std::chrono::milliseconds(150), 2);
    return {[&, self](int n) {
      order.push_back(n);
      if (order.size() == 3)
        self->quit();
    }};
  });
  loop.run_until_no_actors();
  BOOST_TEST(order == (std::vector{1, 2, 3}), boost::test_tools::per_element());
  BOOST_TEST(loop.statistics().sleeps > 0u);
  BOOST_TEST(loop.statistics().timers == 3u);
}

BOOST_AUTO_TEST_CASE(an_actor_may_print) {
  reactor_config config;
  caf::actor_system system(config);
  system.spawn([](caf::event_based_actor* self) { caf::aout(self) << "printed\n"; });
  reactor::of(system).run_until_no_actors();
  BOOST_TEST(system.detached_actors() == 0u);
}
