#include <boost/test/unit_test.hpp>

#include "runtime/reactor/spin_guard.hpp"

using namespace tokenrouter;

namespace {

constexpr std::uint64_t ms = 1'000'000;

/// Spins undisturbed for that long, a look a microsecond; the time afterwards.
std::uint64_t spin(spin_guard& guard, std::uint64_t now_ns, std::uint64_t for_ns) {
  for (const auto until_ns = now_ns + for_ns; now_ns < until_ns; now_ns += 1000)
    BOOST_REQUIRE(guard.may_spin(now_ns));
  return now_ns;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_undisturbed_thread_may_spin_for_ever) {
  spin_guard guard;
  spin(guard, 1, 50 * ms);
  BOOST_TEST(guard.jumps() == 0u);
}

BOOST_AUTO_TEST_CASE(a_jump_in_time_bans_spinning_for_a_while) {
  spin_guard guard;
  std::uint64_t now_ns = spin(guard, 1, ms) + 4 * ms;
  BOOST_TEST(!guard.may_spin(now_ns));
  BOOST_TEST(!guard.may_spin(now_ns + 19 * ms));
  BOOST_TEST(guard.may_spin(now_ns + 20 * ms));
}

BOOST_AUTO_TEST_CASE(work_between_two_looks_is_no_jump) {
  spin_guard guard;
  const std::uint64_t now_ns = spin(guard, 1, ms);
  guard.interrupted();
  BOOST_TEST(guard.may_spin(now_ns + 100 * ms));
}

BOOST_AUTO_TEST_CASE(repeated_jumps_ban_longer_and_quiet_spinning_forgives) {
  spin_guard guard;
  std::uint64_t now_ns = 1;
  for (const std::uint64_t ban_ms : {20, 40, 80, 160, 320, 640, 1280, 2000, 2000}) {
    now_ns = spin(guard, now_ns, ms) + 4 * ms;
    BOOST_REQUIRE(!guard.may_spin(now_ns));
    BOOST_REQUIRE(!guard.may_spin(now_ns + ban_ms * ms - 1));
    now_ns += ban_ms * ms;
  }
  now_ns = spin(guard, now_ns, 25 * ms) + 4 * ms;
  BOOST_TEST(!guard.may_spin(now_ns));
  BOOST_TEST(guard.may_spin(now_ns + 20 * ms));
}
