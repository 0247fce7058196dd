#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/clock.hpp"
#include "runtime/transport/bulk_mover.hpp"
#include "runtime/transport/loopback.hpp"
#include "runtime/transport/simulated.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"

using namespace tokenrouter;

namespace {

constexpr std::size_t kib = 1024;

/// Two ranks with a mover each, over any transport.
struct pair_of_ranks {
  transport& a;
  transport& b;
  std::function<void()> wait; ///< what else makes time pass
  std::vector<std::uint64_t> told;
  bulk_mover at_a{{0}, &a.bulk()};
  bulk_mover at_b{{1}, &b.bulk()};

  bulk_mover::observer listen() {
    return [this](std::uint64_t transfer) { told.push_back(transfer); };
  }

  bool run_until(const std::function<bool()>& done) {
    const auto deadline_us = monotonic_us() + 20'000'000;
    while (!done()) {
      if (monotonic_us() > deadline_us)
        return false;
      if (wait)
        wait();
      a.progress();
      b.progress();
    }
    return true;
  }

  /// Sends that many bytes to a receive of `expected_bytes`; how it ended on the receiving side.
  bulk_stage move(std::size_t bytes, std::size_t expected_bytes) {
    const auto in = at_b.prepare(bulk_way::in, expected_bytes, listen());
    const auto out = at_a.prepare(bulk_way::out, bytes, listen());
    const auto from = at_a.buffer(out)->bytes();
    for (std::size_t i = 0; i < from.size(); ++i)
      from[i] = static_cast<std::byte>(i * 7 + bytes);
    const std::vector<std::byte> sent(from.begin(), from.end());
    const std::uint64_t tag = at_b.new_tag();
    at_b.receive(in, {0}, tag);
    at_a.send(out, {1}, tag);
    BOOST_TEST(run_until([&] {
      return at_b.test(in) != bulk_stage::moving && at_a.test(out) != bulk_stage::moving;
    }));
    const bulk_stage end = at_b.test(in);
    if (end == bulk_stage::moved)
      BOOST_TEST(std::ranges::equal(at_b.buffer(in)->bytes(), sent));
    at_b.release(in);
    at_a.release(out);
    return end;
  }
};

void expect_moves(pair_of_ranks& ranks) {
  for (const std::size_t bytes : {std::size_t{1}, 24 * kib, 300 * kib, 8192 * kib})
    BOOST_TEST((ranks.move(bytes, bytes) == bulk_stage::moved), bytes);
  BOOST_TEST((ranks.move(24 * kib, 25 * kib) == bulk_stage::failed));
  BOOST_TEST((ranks.move(24 * kib, 23 * kib) == bulk_stage::failed));
  BOOST_TEST(ranks.at_a.transfers() == 0u);
  BOOST_TEST(ranks.at_b.transfers() == 0u);
}

} // namespace

BOOST_AUTO_TEST_CASE(buffers_move_over_loopback) {
  loopback_network network(2);
  pair_of_ranks ranks{network.endpoint({0}), network.endpoint({1}), {}, {}};
  expect_moves(ranks);
}

BOOST_AUTO_TEST_CASE(buffers_move_over_ucx) {
  const auto a = std::move(ucx_transport::create({0}).value());
  const auto b = std::move(ucx_transport::create({1}).value());
  BOOST_REQUIRE(a->connect({1}, b->address()).has_value());
  BOOST_REQUIRE(b->connect({0}, a->address()).has_value());
  pair_of_ranks ranks{*a, *b, {}, {}};
  expect_moves(ranks);
}

BOOST_AUTO_TEST_CASE(a_lost_peer_ends_what_is_under_way_with_it_over_ucx) {
  const auto a = std::move(ucx_transport::create({0}).value());
  const auto b = std::move(ucx_transport::create({1}).value());
  BOOST_REQUIRE(a->connect({1}, b->address()).has_value());
  BOOST_REQUIRE(b->connect({0}, a->address()).has_value());
  pair_of_ranks ranks{*a, *b, {}, {}};
  const auto in = ranks.at_a.prepare(bulk_way::in, 64 * kib, ranks.listen());
  ranks.at_a.receive(in, {1}, ranks.at_a.new_tag());
  a->forget({1});
  BOOST_TEST(ranks.run_until([&] { return ranks.at_a.test(in) == bulk_stage::failed; }));
  ranks.at_a.release(in);
  const auto out = ranks.at_a.prepare(bulk_way::out, 64 * kib, ranks.listen());
  ranks.at_a.send(out, {1}, 9);
  BOOST_TEST(ranks.run_until([&] { return ranks.at_a.test(out) == bulk_stage::failed; }));
  ranks.at_a.release(out);
}

BOOST_AUTO_TEST_CASE(buffers_move_over_a_simulated_network_and_fail_as_its_faults_say) {
  simulated_network network(2, 1, {.delay_min_us = 10, .delay_max_us = 50});
  const auto wait = [&] {
    if (const auto next_us = network.next_arrival_us())
      network.advance_to(*next_us);
  };
  pair_of_ranks ranks{network.endpoint({0}), network.endpoint({1}), wait, {}};
  expect_moves(ranks);
  network.set_faults({.bulk_fail_share = 1});
  BOOST_TEST((ranks.move(kib, kib) == bulk_stage::failed));
  network.set_faults({});
  const auto in = ranks.at_b.prepare(bulk_way::in, kib, ranks.listen());
  ranks.at_b.receive(in, {0}, ranks.at_b.new_tag());
  network.kill({0});
  network.endpoint({1}).forget({0});
  BOOST_TEST(ranks.run_until([&] { return ranks.at_b.test(in) == bulk_stage::failed; }));
}

BOOST_AUTO_TEST_CASE(each_way_has_its_own_limit_and_those_beyond_wait_in_order) {
  std::vector<std::uint64_t> told;
  const auto listen = [&](std::uint64_t transfer) { told.push_back(transfer); };
  bulk_mover mover({0}, nullptr, 100);
  const auto first = mover.prepare(bulk_way::in, 60, listen);
  const auto second = mover.prepare(bulk_way::in, 60, listen);
  const auto third = mover.prepare(bulk_way::in, 10, listen); // would fit, but comes later
  const auto out = mover.prepare(bulk_way::out, 100, listen);
  BOOST_TEST((told == std::vector{first, out}));
  BOOST_TEST((mover.test(second) == bulk_stage::queued));
  mover.release(first);
  BOOST_TEST((told == std::vector{first, out, second, third}));
  BOOST_TEST(mover.in_flight_bytes(bulk_way::in) == 70u);
  const auto huge = mover.prepare(bulk_way::in, 1000, listen);
  mover.release(second);
  BOOST_TEST((mover.test(huge) == bulk_stage::queued));
  mover.release(third);
  BOOST_TEST((mover.test(huge) == bulk_stage::ready)); // alone
  const auto behind = mover.prepare(bulk_way::in, 1, listen);
  const auto last = mover.prepare(bulk_way::in, 1, listen);
  mover.release(behind); // while it waits
  mover.release(huge);
  BOOST_TEST((mover.test(last) == bulk_stage::ready));
  mover.release(last);
  mover.release(out);
  BOOST_TEST(mover.transfers() == 0u);
  BOOST_TEST(mover.in_flight_bytes(bulk_way::in) + mover.in_flight_bytes(bulk_way::out) == 0u);
}

BOOST_AUTO_TEST_CASE(between_two_of_one_rank_the_buffers_change_places) {
  bulk_mover mover({0});
  const auto listen = [](std::uint64_t) {};
  const auto out = mover.prepare(bulk_way::out, 8, listen);
  const auto in = mover.prepare(bulk_way::in, 8, listen);
  const auto* sent = mover.buffer(out).get();
  const std::uint64_t tag = mover.new_tag();
  mover.send(out, {0}, tag);
  BOOST_TEST((mover.test(out) == bulk_stage::moving));
  mover.receive(in, {0}, tag);
  BOOST_TEST((mover.test(in) == bulk_stage::moved));
  BOOST_TEST(mover.buffer(in).get() == sent);
}

BOOST_AUTO_TEST_CASE(a_buffer_is_used_again_once_nobody_holds_it) {
  bulk_mover mover({0});
  const auto listen = [](std::uint64_t) {};
  const auto first = mover.prepare(bulk_way::in, 64, listen);
  const auto* memory = mover.buffer(first)->bytes().data();
  auto held = mover.buffer(first);
  mover.release(first);
  const auto second = mover.prepare(bulk_way::in, 64, listen);
  BOOST_TEST(mover.buffer(second)->bytes().data() != memory);
  const auto* other = mover.buffer(second)->bytes().data();
  mover.release(second);
  const auto third = mover.prepare(bulk_way::in, 60, listen);
  BOOST_TEST(mover.buffer(third)->bytes().data() == other);
  BOOST_TEST(mover.buffer(third)->bytes().size() == 60u);
}
