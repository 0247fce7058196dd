#include "runtime/reactor/spinning_blocking_actor.hpp"

#include "runtime/core/clock.hpp"
#include "runtime/reactor/pause.hpp"

namespace tokenrouter {

bool spinning_blocking_actor::spin() {
  constexpr int looks_per_clock_reading = 16;
  if (spin_us_ == 0)
    return has_next_message();
  const auto until_ns = monotonic_ns() + std::uint64_t{spin_us_} * 1000;
  do {
    for (int i = 0; i < looks_per_clock_reading; ++i) {
      if (has_next_message())
        return true;
      pause_briefly();
    }
  } while (monotonic_ns() < until_ns);
  return false;
}

void spinning_blocking_actor::await_data() {
  if (!spin())
    blocking_actor::await_data();
}

bool spinning_blocking_actor::await_data(timeout_type timeout) {
  return spin() || blocking_actor::await_data(timeout);
}

} // namespace tokenrouter
