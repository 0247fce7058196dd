#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include <caf/actor_system_config.hpp>
#include <caf/execution_unit.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include "runtime/reactor/poller.hpp"
#include "runtime/reactor/reactor_clock.hpp"
#include "runtime/reactor/spin_guard.hpp"
#include "runtime/reactor/wakeup.hpp"

namespace tokenrouter {

/// Makes a reactor the scheduler of the actor system built from it; sets nothing global.
struct reactor_config : caf::actor_system_config {
  /// With `virtual_time` no clock of the machine is read: see `reactor::advance_to`.
  explicit reactor_config(bool virtual_time = false);

  const bool virtual_time;
};

enum class spin_policy : std::uint8_t {
  never,           ///< sleeps whenever it has nothing to do
  while_in_flight, ///< keeps looking while `hold_awake` is in force and its core is its own
};

/// Counts since the start.
struct reactor_statistics {
  std::uint64_t sleeps = 0; ///< times the loop's thread waited in the kernel
  std::uint64_t wakes = 0;  ///< times another thread had to wake it
  std::uint64_t jobs = 0;   ///< resumptions of actors
  std::uint64_t polls = 0;  ///< calls of pollers
  std::uint64_t timers = 0; ///< timers fired
};

/// Runs all actors without a thread of their own, the pollers and the timers of one actor system
/// in one thread, the loop's: the one that calls `run_until` or `run_ready` (until the first such
/// call, the one that made the actor system).
///
/// Shutting down, in this order: stop the threads that send from outside; send exit to all actors;
/// clear every table of handles (a handle to an actor with a thread of its own that outlives the
/// system blocks its destructor for ever); `run_until_no_actors()`; detach pollers; destroy the
/// system. Its destructor waits for actors that nobody runs any more, so the order is not optional.
class reactor final : public caf::scheduler::abstract_coordinator {
 public:
  using super = caf::scheduler::abstract_coordinator;

  /// Requires a system built from a `reactor_config`.
  static reactor& of(caf::actor_system& system);

  explicit reactor(caf::actor_system& system, bool virtual_time);

  // Loop thread -----------------------------------------------------------------------------------

  /// Does not own the poller, which must be detached before it dies.
  void attach(poller* source);
  void detach(poller* source);

  /// The loop. `done` is asked after every turn; if another thread can make it true, that thread
  /// must call `wake()` afterwards. Requires real time.
  void run_until(const std::function<bool()>& done);

  /// Runs until the last actor that counts as running has ended. Actors with a thread of their own
  /// must have been given to `wake_at_exit`.
  void run_until_no_actors();

  /// Runs until there is nothing runnable and no poller has anything; returns how many jobs ran
  /// and events came. Fires no timers.
  std::size_t run_ready();

  void set_spin(spin_policy policy) { spin_ = policy; }
  spin_policy spin() const { return spin_; }

  /// Held by whoever awaits something that comes soon (a request in flight): counted.
  void hold_awake() { ++held_; }
  void release_awake();
  std::size_t held() const { return held_; }

  /// Virtual time: fires all timers up to `us` in order of (due time, insertion), each with the
  /// clock at its due time, and runs what they make runnable before the next one; then the clock
  /// stands at `us`. Requires `us` >= `now_us()`.
  void advance_to(std::uint64_t us);

  /// Virtual time: nothing ran meanwhile, as in a process that was stopped; what was due since then
  /// is late when time goes on.
  void stand_still_until(std::uint64_t us);

  /// Due time of the earliest timer, rounded up to whole microseconds.
  std::optional<std::uint64_t> next_timer_us() const;

  reactor_statistics statistics() const;

  // Any thread ------------------------------------------------------------------------------------

  /// Microseconds of the clock that timers run by.
  std::uint64_t now_us() const;

  /// Makes the loop take another turn, even if it sleeps.
  void wake();

  /// Wakes the loop when that actor ends: the end of an actor with a thread of its own does not.
  void wake_at_exit(const caf::actor& who);

  bool virtual_time() const { return virtual_time_; }

  // For CAF ---------------------------------------------------------------------------------------

  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>);
  void start() override;
  void stop() override;
  void enqueue(caf::resumable* job) override;
  reactor_clock& clock() noexcept override { return clock_; }
  bool detaches_utility_actors() const override { return false; }

 private:
  struct unit final : caf::execution_unit {
    explicit unit(reactor& owner) : execution_unit(&owner.system()), owner_(owner) {}
    void exec_later(caf::resumable* job) override { owner_.enqueue(job); }
    reactor& owner_;
  };

  bool in_loop_thread() const;
  void adopt_this_thread();
  void run_one(caf::resumable* job);
  std::size_t run_jobs(std::size_t jobs_max);
  std::size_t poll_all(std::size_t rounds_max);
  void take_inbox();
  bool turn();
  bool may_sleep();
  void sleep();
  void drop_jobs();

  const bool virtual_time_;
  unit unit_;
  reactor_clock clock_;
  wakeup wakeup_;
  spin_policy spin_ = spin_policy::never;
  spin_guard spin_guard_;
  std::size_t held_ = 0;
  std::deque<caf::resumable*> jobs_;
  std::vector<poller*> pollers_;
  reactor_statistics statistics_;
  std::atomic<const void*> loop_thread_;

  std::atomic<bool> sleeping_{false};
  std::atomic<bool> wake_wanted_{false};
  std::atomic<bool> inbox_filled_{false};
  std::atomic<std::uint64_t> wakes_{0};
  std::mutex inbox_mutex_;
  std::vector<caf::resumable*> inbox_; ///< from other threads; guarded by inbox_mutex_
  bool stopped_ = false;               ///< guarded by inbox_mutex_
};

} // namespace tokenrouter
