#include "runtime/reactor/spinning_blocking_actor.hpp"

#include "runtime/core/clock.hpp"
#include "runtime/reactor/pause.hpp"

namespace tokenrouter {

bool spinning_blocking_actor::spin() {
  constexpr int looks_per_clock_reading = 16;
  if (spin_us_ == 0)
    return has_next_message();
  auto now_ns = monotonic_ns();
  const auto until_ns = now_ns + std::uint64_t{spin_us_} * 1000;
  guard_.interrupted();
  while (now_ns < until_ns && guard_.may_spin(now_ns)) {
    for (int i = 0; i < looks_per_clock_reading; ++i) {
      if (has_next_message())
        return true;
      pause_briefly();
    }
    now_ns = monotonic_ns();
  }
  return has_next_message();
}

void spinning_blocking_actor::await_data() {
  if (!spin())
    blocking_actor::await_data();
}

bool spinning_blocking_actor::await_data(timeout_type timeout) {
  return spin() || blocking_actor::await_data(timeout);
}

} // namespace tokenrouter
