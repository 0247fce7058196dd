#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <numeric>

#include "runtime/core/philox.hpp"
#include "tests/actors/link_pair.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

using verdicts = std::function<fate(const sent_frame&)>;

std::vector<std::uint64_t> first_numbers(std::uint64_t n) {
  std::vector<std::uint64_t> x(n);
  std::iota(x.begin(), x.end(), 1);
  return x;
}

bool is_data(const sent_frame& x, std::uint64_t sequence) {
  return x.header.kind == frame_kind::data && x.header.sequence == sequence;
}

/// The fault hits the first frame that `which` holds for, and no other.
verdicts once(fate what, std::function<bool(const sent_frame&)> which) {
  return [what, which = std::move(which), done = false](const sent_frame& x) mutable {
    if (done || !which(x))
      return fate::pass;
    done = true;
    return what;
  };
}

verdicts each(fate what, std::uint64_t every) {
  return [=](const sent_frame& x) { return x.nth % every == 0 ? what : fate::pass; };
}

constexpr std::uint64_t frames = 12;

/// Both sides greet, send `frames` frames each, one every 40 us, and say goodbye.
link_pair converse(verdicts decide, link_settings settings = pair_settings()) {
  link_pair pair(settings);
  pair.decide = std::move(decide);
  for (std::size_t side : {0u, 1u})
    pair.post(side, frame_kind::hello, payload_of(0));
  for (std::uint64_t i = 1; i <= frames; ++i) {
    for (std::size_t side : {0u, 1u})
      pair.post_data(side, i);
    pair.run_until(pair.now_us + 40);
  }
  pair.run_until(pair.now_us + 90'000);
  return pair;
}

} // namespace

BOOST_AUTO_TEST_CASE(whatever_the_wire_does_each_frame_arrives_once_and_in_order) {
  const std::vector<std::pair<const char*, verdicts>> rows{
      {"nothing", [](const sent_frame&) { return fate::pass; }},
      {"loses a hello", once(fate::lose, [](const auto& x) { return x.nth == 1; })},
      {"loses the first", once(fate::lose, [](const auto& x) { return is_data(x, 2); })},
      {"loses one in the middle", once(fate::lose, [](const auto& x) { return is_data(x, 6); })},
      {"loses the last", once(fate::lose, [](const auto& x) { return is_data(x, frames + 1); })},
      {"loses all of one side",
       [](const auto& x) { return x.from == 0 && x.at_us < 5000 ? fate::lose : fate::pass; }},
      {"loses all of both sides",
       [](const auto& x) { return x.at_us < 5000 ? fate::lose : fate::pass; }},
      {"loses every second", each(fate::lose, 2)},
      {"loses what has no data",
       [](const auto& x) {
         return x.header.kind == frame_kind::heartbeat && x.at_us < 5000 ? fate::lose : fate::pass;
       }},
      {"doubles each", each(fate::twice, 1)},
      {"delays every second", each(fate::late, 2)},
      {"delays a hello", once(fate::late, [](const auto& x) { return x.nth == 1; })},
      {"damages every third", each(fate::damage, 3)},
  };
  for (const auto& [what, decide] : rows) {
    const auto pair = converse(decide);
    for (std::size_t side : {0u, 1u}) {
      BOOST_TEST_INFO("the wire " << what);
      BOOST_TEST(pair.numbers(side) == first_numbers(frames), boost::test_tools::per_element());
      BOOST_TEST_INFO("the wire " << what);
      BOOST_TEST((pair.got[side].front().kind == frame_kind::hello));
      BOOST_TEST(pair.sides[side].sending().empty());
    }
    BOOST_TEST(pair.broken == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_sound_wire_sees_each_frame_once_and_few_acknowledgements) {
  const auto pair = converse([](const sent_frame&) { return fate::pass; });
  for (std::size_t side : {0u, 1u}) {
    BOOST_TEST(pair.count_sent(side, frame_kind::data) == frames);
    BOOST_TEST(pair.sides[side].sending().resent_frames() == 0u);
    // One for the last frame, and the heartbeats of 90 ms.
    BOOST_TEST(pair.count_sent(side, frame_kind::heartbeat) <= 10u);
  }
}

BOOST_AUTO_TEST_CASE(a_hole_is_filled_before_the_timer_when_later_frames_show_it) {
  link_pair pair;
  pair.decide = once(fate::lose, [](const auto& x) { return is_data(x, 2); });
  pair.post(0, frame_kind::hello);
  for (std::uint64_t i = 1; i <= frames; ++i)
    pair.post_data(0, i);
  pair.run_until(pair_settings().resend_us() / 2);
  BOOST_TEST(pair.numbers(1) == first_numbers(frames), boost::test_tools::per_element());
  BOOST_TEST(pair.sides[0].sending().resent_frames() == 1u);
}

BOOST_AUTO_TEST_CASE(several_holes_are_filled_one_after_the_other_without_the_timer) {
  link_pair pair;
  std::vector<std::uint64_t> lost;
  pair.decide = [&](const sent_frame& x) {
    const bool hole = x.header.sequence == 3 || x.header.sequence == 5 || x.header.sequence == 8;
    if (!hole || std::count(lost.begin(), lost.end(), x.header.sequence) > 0)
      return fate::pass;
    lost.push_back(x.header.sequence);
    return fate::lose;
  };
  pair.post(0, frame_kind::hello);
  for (std::uint64_t i = 1; i <= frames; ++i)
    pair.post_data(0, i);
  pair.run_until(pair_settings().resend_us() / 2);
  BOOST_TEST(lost.size() == 3u);
  BOOST_TEST(pair.numbers(1) == first_numbers(frames), boost::test_tools::per_element());
  BOOST_TEST(pair.sides[0].sending().resent_frames() == 3u);
}

BOOST_AUTO_TEST_CASE(a_lost_last_frame_goes_again_when_its_time_has_come) {
  link_pair pair;
  pair.decide = once(fate::lose, [](const auto& x) { return is_data(x, 2); });
  pair.post(0, frame_kind::hello);
  pair.run_until(500);
  const auto posted_us = pair.now_us;
  pair.post_data(0, 1);
  pair.run_until(posted_us + pair_settings().resend_us() - 1);
  BOOST_TEST(pair.numbers(1).empty());
  pair.run_until(posted_us + pair_settings().resend_us() + wire_us);
  BOOST_TEST(pair.numbers(1) == first_numbers(1), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_frame_whose_acknowledgement_was_lost_is_delivered_once) {
  link_pair pair;
  pair.decide =
      once(fate::lose, [](const auto& x) { return x.from == 1 && x.header.acknowledged == 2; });
  pair.post(0, frame_kind::hello);
  pair.run_until(500);
  pair.post_data(0, 1);
  pair.run_until(5000);
  BOOST_TEST(pair.numbers(1) == first_numbers(1), boost::test_tools::per_element());
  BOOST_TEST(pair.sides[1].receiving().repeated_frames() == 1u);
  BOOST_TEST(pair.sides[0].sending().unacknowledged() == 0u);
}

BOOST_AUTO_TEST_CASE(a_frame_goes_again_ever_more_rarely_down_to_the_heartbeat) {
  link_pair pair;
  pair.decide = [](const sent_frame&) { return fate::lose; };
  pair.post(0, frame_kind::hello);
  pair.run_until(60'000);
  std::vector<std::uint64_t> gaps_us;
  std::uint64_t last_us = 0;
  for (const auto& x : pair.sent)
    if (x.from == 0 && x.header.kind == frame_kind::hello) {
      if (last_us > 0)
        gaps_us.push_back(x.at_us - last_us);
      last_us = x.at_us;
    }
  const std::vector<std::uint64_t> expected{1001, 2002, 4004, 8008, 10'000, 10'000, 10'000, 10'000};
  BOOST_TEST(gaps_us == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_goodbye_waits_for_the_data_before_it) {
  for (const std::uint64_t lost : {2u, 3u, 4u}) {
    link_pair pair;
    pair.decide =
        once(fate::lose, [lost](const sent_frame& x) { return x.header.sequence == lost; });
    pair.post(0, frame_kind::hello);
    pair.post_data(0, 1);
    pair.post_data(0, 2);
    pair.post(0, frame_kind::goodbye);
    BOOST_TEST(!pair.sides[0].closed());
    pair.run_until(wire_us * 2);
    BOOST_TEST(!pair.sides[1].peer_left());
    pair.run_until(10'000);
    BOOST_TEST(pair.numbers(1) == first_numbers(2), boost::test_tools::per_element());
    BOOST_TEST((pair.got[1].back().kind == frame_kind::goodbye));
    BOOST_TEST(pair.sides[1].peer_left());
    BOOST_TEST(pair.sides[0].closed());
  }
}

BOOST_AUTO_TEST_CASE(any_mixture_of_faults_is_survived_with_any_window) {
  constexpr std::uint64_t total = 60;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    auto settings = pair_settings();
    settings.window_frames_max = 1 + static_cast<std::uint32_t>(seed % 7);
    settings.window_bytes_max = seed % 3 == 0 ? 20 : 1000;
    link_pair pair(settings);
    std::uint32_t position = 0;
    pair.decide = [&](const sent_frame&) {
      const float draw = uniform_draw(seed, 1, ++position, 0);
      return draw < 0.1f   ? fate::lose
             : draw < 0.2f ? fate::twice
             : draw < 0.3f ? fate::late
             : draw < 0.4f ? fate::damage
                           : fate::pass;
    };
    for (std::size_t side : {0u, 1u})
      pair.post(side, frame_kind::hello);
    for (std::uint64_t i = 1; i <= total; ++i) {
      pair.post_data(i % 2, (i + 1) / 2);
      if (i % 5 == 0)
        pair.run_until(pair.now_us + 25 * (seed % 11));
    }
    pair.run_until(pair.now_us + 400'000);
    for (std::size_t side : {0u, 1u}) {
      BOOST_TEST_INFO("seed " << seed);
      BOOST_TEST(pair.numbers(side) == first_numbers(total / 2), boost::test_tools::per_element());
      BOOST_TEST(!pair.sides[side].timed_out(pair.now_us).has_value());
      BOOST_TEST(!pair.sides[side].stalled(pair.now_us).has_value());
    }
    BOOST_TEST(pair.broken == 0u);
  }
}
