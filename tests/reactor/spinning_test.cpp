#include <boost/test/unit_test.hpp>

#include <chrono>
#include <thread>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "runtime/reactor/reactor.hpp"
#include "runtime/reactor/spinning_blocking_actor.hpp"

using namespace tokenrouter;

namespace {

class doubler : public spinning_blocking_actor {
 public:
  using spinning_blocking_actor::spinning_blocking_actor;

  void act() override {
    bool running = true;
    receive_while(running)([](int n) { return 2 * n; }, [&](caf::exit_msg&) { running = false; });
  }
};

class impatient : public spinning_blocking_actor {
 public:
  using spinning_blocking_actor::spinning_blocking_actor;

  void act() override {
    receive([](int) { BOOST_ERROR("nobody sent anything"); },
            caf::after(std::chrono::milliseconds(2)) >> [] {});
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_blocking_actor_answers_whether_it_spins_or_not) {
  for (const std::uint32_t spin_us : {0u, 20u, 2000u}) {
    reactor_config config;
    caf::actor_system system(config);
    auto& loop = reactor::of(system);
    int sum = 0;
    {
      auto model = system.spawn<doubler, caf::detached>(spin_us);
      loop.wake_at_exit(model);
      system.spawn([&, model](caf::event_based_actor* self) -> caf::behavior {
        self->send(model, 1);
        return {[&, self, model](int n) {
          sum += n;
          if (sum < 200) {
            self->send(model, 1);
            return;
          }
          self->send_exit(model, caf::exit_reason::user_shutdown);
          self->quit();
        }};
      });
    }
    loop.run_until_no_actors();
    BOOST_TEST(sum == 200);
  }
}

BOOST_AUTO_TEST_CASE(a_blocking_actor_that_sleeps_after_its_spin_is_woken) {
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  int answer = 0;
  {
    auto model = system.spawn<doubler, caf::detached>(10u);
    loop.wake_at_exit(model);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    system.spawn([&, model](caf::event_based_actor* self) -> caf::behavior {
      self->send(model, 21);
      return {[&, self, model](int n) {
        answer = n;
        self->send_exit(model, caf::exit_reason::user_shutdown);
        self->quit();
      }};
    });
  }
  loop.run_until_no_actors();
  BOOST_TEST(answer == 42);
}

BOOST_AUTO_TEST_CASE(a_spinning_actor_keeps_its_receive_timeouts) {
  for (const std::uint32_t spin_us : {0u, 100u}) {
    reactor_config config;
    caf::actor_system system(config);
    auto& loop = reactor::of(system);
    loop.wake_at_exit(system.spawn<impatient, caf::detached>(spin_us));
    loop.run_until_no_actors();
    BOOST_TEST(system.registry().running() == 0u);
  }
}
