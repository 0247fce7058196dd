#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/clock.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"
#include "runtime/wire/frame_check.hpp"

using namespace tokenrouter;

namespace {

/// Two transports in one process, connected to each other.
struct couple {
  std::unique_ptr<ucx_transport> a = std::move(ucx_transport::create({0}).value());
  std::unique_ptr<ucx_transport> b = std::move(ucx_transport::create({1}).value());

  couple() {
    BOOST_REQUIRE(a->connect({1}, b->address()).has_value());
    BOOST_REQUIRE(b->connect({0}, a->address()).has_value());
  }

  bool run_until(const std::function<bool()>& done) {
    const auto deadline_us = monotonic_us() + 20'000'000;
    while (!done()) {
      if (monotonic_us() > deadline_us)
        return false;
      a->progress();
      b->progress();
    }
    return true;
  }
};

result<void> send_bytes(transport& from, rank_id to, std::uint64_t sequence, std::size_t bytes) {
  std::vector<std::byte> payload(bytes, static_cast<std::byte>(sequence));
  frame_header header;
  header.sequence = sequence;
  const auto made = make_frame(header, payload);
  return from.send(to, made, std::move(payload));
}

} // namespace

BOOST_AUTO_TEST_CASE(small_frames_do_not_overtake_a_large_one) {
  couple pair;
  std::vector<std::uint64_t> seen;
  pair.b->on_frame([&](rank_id from, const frame_header& header, auto payload) {
    BOOST_TEST(from.value == 0u);
    BOOST_TEST(check_frame(header, payload).has_value());
    seen.push_back(header.sequence);
  });
  std::uint64_t sequence = 0;
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{10}, std::size_t{0},
                                  std::size_t{300'000}, std::size_t{9000}, std::size_t{1}})
    BOOST_TEST(send_bytes(*pair.a, {1}, ++sequence, bytes).has_value());
  BOOST_TEST(pair.run_until([&] { return seen.size() == sequence; }));
  for (std::size_t i = 0; i < seen.size(); ++i)
    BOOST_TEST(seen[i] == i + 1);
  BOOST_TEST(pair.run_until([&] { return pair.a->pending_sends() == 0; }));
}

BOOST_AUTO_TEST_CASE(the_largest_frame_passes_and_a_longer_one_is_refused) {
  couple pair;
  std::size_t seen_bytes = 0;
  pair.b->on_frame([&](rank_id, const frame_header& header, auto payload) {
    BOOST_TEST(check_frame(header, payload).has_value());
    seen_bytes = payload.size();
  });
  BOOST_TEST(send_bytes(*pair.a, {1}, 1, limits::frame_bytes_max).has_value());
  BOOST_TEST(pair.run_until([&] { return seen_bytes == limits::frame_bytes_max; }));
  BOOST_TEST(
      (pair.a->send({1}, {}, std::vector<std::byte>(limits::frame_bytes_max + 1)).error().code ==
       errc::capacity));
}

BOOST_AUTO_TEST_CASE(an_address_is_checked_before_it_is_used) {
  auto a = std::move(ucx_transport::create({0}).value());
  auto b = std::move(ucx_transport::create({1}).value());
  const auto good = b->address();
  BOOST_TEST((a->connect({1}, {}).error().code == errc::malformed));
  BOOST_TEST((a->connect({1}, std::span(good).first(8)).error().code == errc::malformed));
  auto bad = good;
  bad[0] ^= std::byte{1};
  BOOST_TEST((a->connect({1}, bad).error().code == errc::malformed));
  BOOST_TEST((a->connect({2}, good).error().code == errc::mismatch));
  BOOST_TEST((a->send({1}, {}, {}).error().code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(a_forgotten_rank_may_come_back_as_another_incarnation) {
  couple pair;
  int seen = 0;
  const auto count = [&](auto...) { ++seen; };
  pair.b->on_frame(count);
  BOOST_TEST(send_bytes(*pair.a, {1}, 1, 10).has_value());
  BOOST_TEST(pair.run_until([&] { return seen == 1; }));
  const auto old_address = pair.b->address();
  pair.a->forget({1});
  BOOST_TEST((send_bytes(*pair.a, {1}, 2, 10).error().code == errc::unavailable));
  BOOST_TEST((pair.a->connect({1}, old_address).error().code == errc::mismatch));
  pair.b = std::move(ucx_transport::create({1}).value());
  pair.b->on_frame(count);
  BOOST_TEST(pair.b->connect({0}, pair.a->address()).has_value());
  BOOST_TEST(pair.a->connect({1}, pair.b->address()).has_value());
  BOOST_TEST(send_bytes(*pair.a, {1}, 1, 10).has_value());
  BOOST_TEST(pair.run_until([&] { return seen == 2; }));
}

BOOST_AUTO_TEST_CASE(frames_of_a_forgotten_rank_are_not_handed_over) {
  couple pair;
  int seen = 0;
  pair.b->on_frame([&](auto...) { ++seen; });
  BOOST_TEST(send_bytes(*pair.a, {1}, 1, 10).has_value());
  BOOST_TEST(send_bytes(*pair.a, {1}, 2, 200'000).has_value());
  pair.b->forget({0});
  for (int i = 0; i < 1000; ++i) {
    pair.a->progress();
    pair.b->progress();
  }
  BOOST_TEST(seen == 0);
}

BOOST_AUTO_TEST_CASE(a_frame_sink_may_answer_and_forget_from_inside) {
  couple pair;
  int answers = 0;
  pair.b->on_frame([&](rank_id from, const frame_header& header, auto) {
    static_cast<void>(send_bytes(*pair.b, from, header.sequence, 5));
  });
  pair.a->on_frame([&](rank_id from, const frame_header& header, auto) {
    ++answers;
    if (header.sequence == 10)
      pair.a->forget(from);
    else
      static_cast<void>(send_bytes(*pair.a, from, header.sequence + 1, 5));
  });
  BOOST_TEST(send_bytes(*pair.a, {1}, 1, 5).has_value());
  BOOST_TEST(pair.run_until([&] { return answers == 10; }));
  BOOST_TEST((send_bytes(*pair.a, {1}, 1, 5).error().code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(the_transport_names_what_carries_it) {
  couple pair;
  bool seen = false;
  pair.b->on_frame([&](auto...) { seen = true; });
  BOOST_TEST(send_bytes(*pair.a, {1}, 1, 5).has_value());
  BOOST_TEST(pair.run_until([&] { return seen; }));
  const auto name = pair.a->describe({1});
  BOOST_TEST_MESSAGE("carried by " << name);
  BOOST_TEST(name.starts_with("ucx "));
  BOOST_TEST(name.find('(') == std::string::npos);
  BOOST_TEST(pair.a->describe({9}) == "ucx (closed)");
}

BOOST_AUTO_TEST_CASE(close_lets_accepted_frames_leave) {
  couple pair;
  int seen = 0;
  pair.b->on_frame([&](auto...) { ++seen; });
  BOOST_TEST(send_bytes(*pair.a, {1}, 1, 100).has_value());
  BOOST_TEST(pair.run_until([&] { return seen == 1; }));
  for (std::uint64_t i = 2; i <= 100; ++i)
    BOOST_TEST(send_bytes(*pair.a, {1}, i, 100).has_value());
  BOOST_TEST(pair.a->close(5000));
  BOOST_TEST((send_bytes(*pair.a, {1}, 101, 1).error().code == errc::unavailable));
  const auto deadline_us = monotonic_us() + 10'000'000;
  while (seen < 100 && monotonic_us() < deadline_us)
    pair.b->progress();
  BOOST_TEST(seen == 100);
}
