#pragma once

#include <cstdint>

#include <caf/blocking_actor.hpp>

#include "runtime/reactor/spin_guard.hpp"

namespace tokenrouter {

/// Base of actors with a thread of their own that look at their mailbox for a while before they
/// sleep on it: a message then reaches them in well under a microsecond instead of tens. Only for
/// threads with a core of their own; if it turns out to be shared, they sleep. What they send to
/// other actors wakes the reactor.
///
/// Spawn with `system.spawn<T, caf::detached>(spin_us, …)` and hand the handle to
/// `reactor::wake_at_exit`.
class spinning_blocking_actor : public caf::blocking_actor {
 public:
  /// `spin_us`: longest time to spin before each sleep; 0 = never spin.
  spinning_blocking_actor(caf::actor_config& config, std::uint32_t spin_us)
      : blocking_actor(config), spin_us_(spin_us) {}

  void await_data() override;
  bool await_data(timeout_type timeout) override;

 private:
  /// True as soon as there is a message; false when the time is up.
  bool spin();

  const std::uint32_t spin_us_;
  spin_guard guard_;
};

} // namespace tokenrouter
