#include "runtime/reactor/reactor_clock.hpp"

#include <utility>

#include "runtime/core/check.hpp"

namespace tokenrouter {

static_assert(std::is_same_v<reactor_clock::duration_type, std::chrono::nanoseconds>);

reactor_clock::reactor_clock(bool virtual_time, std::function<void()> on_earlier)
    : virtual_time_(virtual_time), on_earlier_(std::move(on_earlier)) {}

reactor_clock::time_point reactor_clock::now() const noexcept {
  if (virtual_time_)
    return time_point{duration_type{virtual_now_ns_.load(std::memory_order_relaxed)}};
  return clock_type::now();
}

void reactor_clock::set_now_ns(std::int64_t now_ns) {
  check(virtual_time_, "only a virtual clock can be set");
  check(now_ns >= virtual_now_ns_.load(std::memory_order_relaxed), "virtual time runs forwards");
  virtual_now_ns_.store(now_ns, std::memory_order_relaxed);
}

std::size_t reactor_clock::fire_due(std::int64_t until_ns) {
  std::size_t fired = 0;
  while (next_due_ns() <= until_ns) {
    unique_delayed_event_ptr due;
    changed([&] {
      const auto first = schedule_.begin();
      if (first == schedule_.end() || first->first.time_since_epoch().count() > until_ns)
        return;
      due = std::move(first->second);
      if (due->backlink != actor_lookup_.end())
        actor_lookup_.erase(due->backlink);
      schedule_.erase(first);
    });
    // Shipped without the lock: the receiver's mailbox may be closed and end actors.
    if (due) {
      ship(*due);
      ++fired;
    }
  }
  return fired;
}

template <class F>
void reactor_clock::changed(F change) {
  bool earlier = false;
  {
    const std::lock_guard guard(mutex_);
    change();
    const auto due =
        schedule_.empty() ? never_ns : schedule_.begin()->first.time_since_epoch().count();
    earlier = due < next_due_ns_.exchange(due, std::memory_order_seq_cst);
  }
  if (earlier)
    on_earlier_();
}

void reactor_clock::set_ordinary_timeout(time_point due, caf::abstract_actor* self,
                                         caf::atom_value type, std::uint64_t id) {
  changed([&] { super::set_ordinary_timeout(due, self, type, id); });
}

void reactor_clock::set_multi_timeout(time_point due, caf::abstract_actor* self,
                                      caf::atom_value type, std::uint64_t id) {
  changed([&] { super::set_multi_timeout(due, self, type, id); });
}

void reactor_clock::set_request_timeout(time_point due, caf::abstract_actor* self,
                                        caf::message_id id) {
  changed([&] { super::set_request_timeout(due, self, id); });
}

void reactor_clock::cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) {
  changed([&] { super::cancel_ordinary_timeout(self, type); });
}

void reactor_clock::cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) {
  changed([&] { super::cancel_request_timeout(self, id); });
}

void reactor_clock::cancel_timeouts(caf::abstract_actor* self) {
  changed([&] { super::cancel_timeouts(self); });
}

void reactor_clock::schedule_message(time_point due, caf::strong_actor_ptr receiver,
                                     caf::mailbox_element_ptr content) {
  changed([&] { super::schedule_message(due, std::move(receiver), std::move(content)); });
}

void reactor_clock::schedule_message(time_point due, caf::group target,
                                     caf::strong_actor_ptr sender, caf::message content) {
  changed([&] {
    super::schedule_message(due, std::move(target), std::move(sender), std::move(content));
  });
}

void reactor_clock::cancel_all() {
  schedule_map dropped;
  changed([&] {
    actor_lookup_.clear();
    dropped.swap(schedule_);
  });
}

} // namespace tokenrouter
