#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>

#include <caf/detail/simple_actor_clock.hpp>

namespace tokenrouter {

/// The timers of a reactor. Any thread sets and cancels them; the loop's thread fires them, in
/// order of due time and, among equals, of insertion.
class reactor_clock : public caf::detail::simple_actor_clock {
 public:
  static constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

  /// `on_earlier` is called, on the thread that set the timer, when a timer becomes the earliest.
  reactor_clock(bool virtual_time, std::function<void()> on_earlier);

  /// Real time: the steady clock. Virtual time: what `set_now_ns` said last; starts at 1 us,
  /// because CAF takes a time of 0 for "unset".
  time_point now() const noexcept override;
  std::int64_t now_ns() const noexcept { return now().time_since_epoch().count(); }

  /// Requires virtual time and that time does not run backwards. Loop thread.
  void set_now_ns(std::int64_t now_ns);

  /// Due time of the earliest timer; `never_ns` if there is none. Any thread.
  std::int64_t next_due_ns() const noexcept { return next_due_ns_.load(std::memory_order_seq_cst); }

  /// Fires every timer due at `until_ns` or before; returns how many. Loop thread.
  std::size_t fire_due(std::int64_t until_ns);

  void set_ordinary_timeout(time_point due, caf::abstract_actor* self, caf::atom_value type,
                            std::uint64_t id) override;
  void set_multi_timeout(time_point due, caf::abstract_actor* self, caf::atom_value type,
                         std::uint64_t id) override;
  void set_request_timeout(time_point due, caf::abstract_actor* self, caf::message_id id) override;
  void cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) override;
  void cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) override;
  void cancel_timeouts(caf::abstract_actor* self) override;
  void schedule_message(time_point due, caf::strong_actor_ptr receiver,
                        caf::mailbox_element_ptr content) override;
  void schedule_message(time_point due, caf::group target, caf::strong_actor_ptr sender,
                        caf::message content) override;
  void cancel_all() override;

 private:
  using super = caf::detail::simple_actor_clock;

  /// Runs `change` under the lock, publishes the earliest due time and reports if it moved up.
  template <class F>
  void changed(F change);

  const bool virtual_time_;
  const std::function<void()> on_earlier_;
  std::atomic<std::int64_t> virtual_now_ns_{1000};
  std::atomic<std::int64_t> next_due_ns_{never_ns};
  /// Recursive: dropping a timer may end its actor, which cancels its other timers.
  std::recursive_mutex mutex_;
};

} // namespace tokenrouter
