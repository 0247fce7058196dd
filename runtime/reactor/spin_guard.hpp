#pragma once

#include <algorithm>
#include <cstdint>

namespace tokenrouter {

/// Tells a spinning thread when its core is not its own. Between two looks of a spinning loop only
/// nanoseconds pass; if time jumps, someone else ran on the core, and a thread that goes on
/// spinning uses up its time slices and is then off the core, for milliseconds, just when its
/// message comes. So after a jump the thread must sleep instead for a while: 20 ms at first,
/// doubling up to 2 s as long as jumps go on, and 20 ms again after 20 ms of undisturbed spinning.
/// Pure.
class spin_guard {
 public:
  /// One look, at this monotonic time. False: sleep.
  bool may_spin(std::uint64_t now_ns) {
    if (now_ns < banned_until_ns_)
      return false;
    const std::uint64_t since_last_ns = last_look_ns_ == 0 ? 0 : now_ns - last_look_ns_;
    if (since_last_ns > jump_ns) {
      backoff_ns_ = std::clamp(backoff_ns_ * 2, backoff_min_ns, backoff_max_ns);
      banned_until_ns_ = now_ns + backoff_ns_;
      last_look_ns_ = 0;
      undisturbed_ns_ = 0;
      ++jumps_;
      return false;
    }
    undisturbed_ns_ += since_last_ns;
    if (undisturbed_ns_ >= undisturbed_enough_ns)
      backoff_ns_ = 0;
    last_look_ns_ = now_ns;
    return true;
  }

  /// The thread did something else since its last look: that time is no jump.
  void interrupted() { last_look_ns_ = 0; }

  std::uint64_t jumps() const { return jumps_; }

 private:
  static constexpr std::uint64_t jump_ns = 200'000;
  static constexpr std::uint64_t backoff_min_ns = 20'000'000;
  static constexpr std::uint64_t backoff_max_ns = 2'000'000'000;
  static constexpr std::uint64_t undisturbed_enough_ns = 20'000'000;

  std::uint64_t last_look_ns_ = 0;
  std::uint64_t banned_until_ns_ = 0;
  std::uint64_t backoff_ns_ = 0;
  std::uint64_t undisturbed_ns_ = 0;
  std::uint64_t jumps_ = 0;
};

} // namespace tokenrouter
