#include <boost/test/unit_test.hpp>

#include <array>
#include <csignal>
#include <cstdlib>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"
#include "runtime/wire/frame_check.hpp"

using namespace tokenrouter;

namespace {

void put(int fd, const std::vector<std::byte>& bytes) {
  const std::size_t n = bytes.size();
  check(write(fd, &n, sizeof n) == static_cast<ssize_t>(sizeof n), "pipe");
  check(write(fd, bytes.data(), n) == static_cast<ssize_t>(n), "pipe");
}

std::vector<std::byte> get(int fd) {
  std::size_t n = 0;
  check(read(fd, &n, sizeof n) == static_cast<ssize_t>(sizeof n), "pipe");
  std::vector<std::byte> bytes(n);
  check(read(fd, bytes.data(), n) == static_cast<ssize_t>(n), "pipe");
  return bytes;
}

result<void> send_bytes(transport& from, rank_id to, std::size_t bytes) {
  std::vector<std::byte> payload(bytes);
  const auto header = make_frame({}, payload);
  return from.send(to, header, std::move(payload));
}

/// The peer: meets the parent, says so with one frame, and then does nothing until it is killed.
[[noreturn]] void live_until_killed(int in, int out) {
  auto carrier = std::move(ucx_transport::create({1}).value());
  put(out, carrier->address());
  check(carrier->connect({0}, get(in)).has_value(), "child connects");
  bool met = false;
  carrier->on_frame([&](auto...) { met = true; });
  check(send_bytes(*carrier, {0}, 10).has_value(), "child sends");
  while (!met || carrier->pending_sends() > 0)
    carrier->progress();
  check(send_bytes(*carrier, {0}, 10).has_value(), "child sends");
  for (;;)
    pause();
}

} // namespace

// A rank that hangs and then dies, with small frames and a rendezvous to it under way.
BOOST_AUTO_TEST_CASE(a_dead_peer_holds_up_neither_sends_nor_forget_nor_close) {
  std::array<int, 2> to_child{}, to_parent{};
  BOOST_REQUIRE(pipe(to_child.data()) == 0);
  BOOST_REQUIRE(pipe(to_parent.data()) == 0);
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0)
    live_until_killed(to_child[0], to_parent[1]);
  auto carrier = std::move(ucx_transport::create({0}).value());
  put(to_child[1], carrier->address());
  BOOST_TEST(carrier->connect({1}, get(to_parent[0])).has_value());
  int met = 0;
  carrier->on_frame([&](auto...) { ++met; });
  BOOST_TEST(send_bytes(*carrier, {1}, 10).has_value());
  const auto deadline_us = monotonic_us() + 10'000'000;
  while (met < 2 && monotonic_us() < deadline_us)
    carrier->progress();
  BOOST_TEST(met == 2);
  // More than the peer's queue holds, since it takes nothing.
  for (int i = 0; i < 2000; ++i)
    BOOST_REQUIRE(send_bytes(*carrier, {1}, 100).has_value());
  BOOST_TEST(send_bytes(*carrier, {1}, 1 << 20).has_value());
  BOOST_TEST(carrier->pending_sends() > 0u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (int i = 0; i < 100; ++i)
    BOOST_REQUIRE(send_bytes(*carrier, {1}, 100).has_value());
  for (int i = 0; i < 1000; ++i)
    carrier->progress();
  carrier->forget({1});
  for (int i = 0; i < 1000; ++i)
    carrier->progress();
  BOOST_TEST((send_bytes(*carrier, {1}, 1).error().code == errc::unavailable));
  BOOST_TEST(carrier->pending_sends() == 0u);
  // A queue that stays full for ever must not keep the thread from sleeping.
  BOOST_TEST(carrier->prepare_sleep());
  pollfd event{carrier->event_fd(), POLLIN, 0};
  poll(&event, 1, 50);
  carrier->progress();
  BOOST_TEST(carrier->prepare_sleep());
  // Bounded, whatever UCX thinks of the peer: the alarm ends a close that hangs.
  alarm(20);
  carrier->close(300);
  carrier.reset();
  alarm(0);
}
