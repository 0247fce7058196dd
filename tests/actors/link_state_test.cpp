#include <boost/test/unit_test.hpp>

#include <numeric>

#include "actors/link_state.hpp"

using namespace tokenrouter;

namespace {

constexpr std::uint64_t timeout_us = 5000;
constexpr std::uint64_t period_us = 200;

link_state make_link(std::uint64_t now_us = 0) {
  link_settings x;
  x.self = {3};
  x.heartbeat_us = period_us; // acknowledges after 3 us, sends again after 21 us
  x.peer_timeout_us = timeout_us;
  return link_state(x, now_us);
}

frame_header numbered(frame_kind kind, std::uint64_t sequence, std::uint64_t acknowledged = 0,
                      std::uint32_t epoch = 0) {
  frame_header x;
  x.kind = kind;
  x.source_rank = 1;
  x.epoch = epoch;
  x.sequence = sequence;
  x.acknowledged = acknowledged;
  return x;
}

frame_header data(std::uint64_t sequence, std::uint64_t acknowledged = 0, std::uint32_t epoch = 0) {
  return numbered(frame_kind::data, sequence, acknowledged, epoch);
}

frame_header beat(std::uint64_t acknowledged = 0, std::uint32_t epoch = 0) {
  return numbered(frame_kind::heartbeat, 0, acknowledged, epoch);
}

frame_verdict take(link_state& link, const frame_header& header, std::uint64_t now_us) {
  std::vector<std::byte> payload(8);
  return link.on_frame(header, payload, now_us);
}

/// Headers of all that the link wants to send.
std::vector<frame_header> outgoing(link_state& link, std::uint64_t now_us) {
  std::vector<frame_header> x;
  while (const auto frame = link.take_outgoing(now_us))
    x.push_back(frame->header);
  return x;
}

std::vector<frame_header> post(link_state& link, frame_kind kind, std::uint64_t now_us,
                               std::size_t bytes = 8) {
  link.post(kind, std::vector<std::byte>(bytes));
  return outgoing(link, now_us);
}

} // namespace

BOOST_AUTO_TEST_CASE(every_frame_but_a_heartbeat_has_the_next_number) {
  auto link = make_link();
  std::uint64_t number = 0;
  for (const auto kind :
       {frame_kind::hello, frame_kind::data, frame_kind::data, frame_kind::goodbye}) {
    const auto sent = post(link, kind, 1);
    BOOST_REQUIRE(sent.size() == 1u);
    BOOST_TEST((sent[0].kind == kind));
    BOOST_TEST(sent[0].sequence == ++number);
    BOOST_TEST(sent[0].source_rank == 3u);
  }
  const auto beats = outgoing(link, period_us + 1);
  BOOST_REQUIRE(beats.size() == 1u);
  BOOST_TEST((beats[0].kind == frame_kind::heartbeat));
  BOOST_TEST(beats[0].sequence == 0u);
}

BOOST_AUTO_TEST_CASE(every_frame_acknowledges_what_was_received_in_order) {
  auto link = make_link();
  BOOST_TEST(post(link, frame_kind::hello, 1).at(0).acknowledged == 0u);
  take(link, data(1), 2);
  take(link, data(2), 2);
  take(link, data(4), 2);
  BOOST_TEST(post(link, frame_kind::data, 2).at(0).acknowledged == 2u);
  take(link, data(3), 3);
  while (link.next_ready())
    ;
  BOOST_TEST(outgoing(link, 3).at(0).acknowledged == 4u);
}

BOOST_AUTO_TEST_CASE(an_acknowledgement_waits_for_a_frame_to_ride_on) {
  auto link = make_link();
  take(link, data(1), 10);
  BOOST_TEST(outgoing(link, 10).empty());
  BOOST_TEST(link.due_us().value_or(0) == 13u);
  BOOST_TEST(post(link, frame_kind::data, 12).size() == 1u);
  BOOST_TEST(outgoing(link, 13).empty()); // it rode on the data
  take(link, data(2, 1), 20);
  const auto alone = outgoing(link, 23);
  BOOST_REQUIRE(alone.size() == 1u);
  BOOST_TEST((alone[0].kind == frame_kind::heartbeat));
  BOOST_TEST(alone[0].acknowledged == 2u);
  BOOST_TEST(outgoing(link, 24).empty());
}

BOOST_AUTO_TEST_CASE(an_acknowledgement_does_not_wait_when_the_sender_needs_it) {
  struct row {
    const char* what;
    std::vector<std::uint64_t> sequences;
    std::size_t frames_at_once;
  };
  std::vector<std::uint64_t> quarter(limits::link_window_frames / 4);
  std::iota(quarter.begin(), quarter.end(), 1);
  const std::vector<row> rows{{"in order", {1, 2, 3}, 0},
                              {"one is missing", {1, 3}, 1},
                              {"one came twice", {1, 1}, 1},
                              {"a hole was filled", {2, 1}, 1},
                              {"a quarter window", quarter, 1}};
  for (const auto& r : rows) {
    auto link = make_link();
    for (const auto x : r.sequences)
      take(link, data(x), 1);
    BOOST_TEST(outgoing(link, 1).size() == r.frames_at_once, r.what);
  }
}

BOOST_AUTO_TEST_CASE(what_the_peer_acknowledges_is_no_longer_open) {
  auto link = make_link();
  for (int i = 0; i < 3; ++i)
    post(link, frame_kind::data, 1);
  BOOST_TEST(link.sending().unacknowledged() == 3u);
  take(link, beat(2), 2);
  BOOST_TEST(link.sending().unacknowledged() == 1u);
  take(link, beat(1), 3); // an older count takes nothing back
  BOOST_TEST(link.sending().unacknowledged() == 1u);
  take(link, data(1, 3), 4);
  BOOST_TEST(link.sending().unacknowledged() == 0u);
}

BOOST_AUTO_TEST_CASE(a_frame_is_judged_by_its_number_and_epoch) {
  struct row {
    const char* what;
    std::vector<frame_header> before;
    frame_header frame;
    frame_verdict verdict;
  };
  const std::vector<row> rows{
      {"the first", {}, data(1), frame_verdict::deliver},
      {"the next", {data(1), data(2)}, data(3), frame_verdict::deliver},
      {"a heartbeat between", {data(1)}, beat(), frame_verdict::control},
      {"after a heartbeat", {data(1), beat()}, data(2), frame_verdict::deliver},
      {"one is missing", {data(1)}, data(3), frame_verdict::kept},
      {"the first is missing", {}, data(2), frame_verdict::kept},
      {"early, twice", {data(3)}, data(3), frame_verdict::drop},
      {"twice", {data(1), data(2)}, data(2), frame_verdict::drop},
      {"an older one", {data(1), data(2)}, data(1), frame_verdict::drop},
      {"the last with credit", {}, data(limits::link_window_frames), frame_verdict::kept},
      {"beyond its credit", {}, data(limits::link_window_frames + 1), frame_verdict::drop},
      {"no number", {}, data(0), frame_verdict::broken},
      {"a heartbeat with a number", {}, numbered(frame_kind::heartbeat, 1), frame_verdict::broken},
      {"acknowledges what was never sent", {}, data(1, 1), frame_verdict::broken},
      {"a heartbeat acknowledges what was never sent", {}, beat(1), frame_verdict::broken},
      {"another incarnation", {data(1, 0, 4)}, data(2, 0, 5), frame_verdict::drop},
      {"an older incarnation", {data(1, 0, 4)}, data(2, 0, 3), frame_verdict::drop},
      {"the incarnation of the first frame",
       {data(1, 0, 4)},
       data(2, 0, 4),
       frame_verdict::deliver},
      {"a goodbye of another incarnation",
       {data(1, 0, 4)},
       numbered(frame_kind::goodbye, 2, 0, 5),
       frame_verdict::drop},
  };
  for (const auto& r : rows) {
    auto link = make_link();
    for (const auto& x : r.before)
      take(link, x, 1);
    BOOST_TEST((take(link, r.frame, 2) == r.verdict), r.what);
  }
}

BOOST_AUTO_TEST_CASE(a_frame_of_another_incarnation_leaves_no_trace) {
  auto link = make_link();
  take(link, data(1, 0, 4), 10);
  take(link, numbered(frame_kind::goodbye, 2, 0, 5), 4000);
  BOOST_TEST(!link.peer_left());
  BOOST_TEST(link.timed_out(10 + timeout_us + 1).has_value()); // nor is it a sign of life
  BOOST_TEST((take(link, data(2, 0, 4), 4001) == frame_verdict::deliver));
}

BOOST_AUTO_TEST_CASE(no_more_than_the_window_is_on_the_wire_and_the_rest_waits_in_order) {
  struct row {
    std::uint32_t frames_max;
    std::size_t bytes_max;
    std::size_t first; ///< frames that go at once, of 8 bytes each
  };
  for (const auto& r : {row{4, 1000, 4}, row{100, 24, 3}, row{100, 7, 1}, row{1, 1000, 1}}) {
    link_settings settings;
    settings.window_frames_max = r.frames_max;
    settings.window_bytes_max = r.bytes_max;
    link_state link(settings, 0);
    for (int i = 0; i < 10; ++i)
      link.post(frame_kind::data, std::vector<std::byte>(8));
    BOOST_TEST(outgoing(link, 1).size() == r.first);
    BOOST_TEST(link.sending().waiting_frames() == 10 - r.first);
    for (std::uint64_t acknowledged = 1; acknowledged <= 10; ++acknowledged) {
      take(link, beat(acknowledged), 2);
      const auto sent = outgoing(link, 2);
      BOOST_TEST(sent.size() == (acknowledged + r.first <= 10 ? 1u : 0u));
      if (!sent.empty())
        BOOST_TEST(sent[0].sequence == acknowledged + r.first);
    }
    BOOST_TEST(link.sending().empty());
  }
}

BOOST_AUTO_TEST_CASE(a_frame_goes_again_with_its_own_bytes) {
  auto link = make_link();
  constexpr std::size_t many = 100; // the buffers must move to a larger ring on the way
  for (std::size_t i = 1; i <= many; ++i)
    post(link, frame_kind::data, 1, i);
  for (std::size_t i = 1; i <= many; ++i) {
    link.on_time(i * 1000, false);
    const auto again = link.take_outgoing(i * 1000);
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST(again->header.sequence == i);
    BOOST_TEST(again->payload.size() == i);
    take(link, beat(i), i * 1000);
    outgoing(link, i * 1000);
  }
}

BOOST_AUTO_TEST_CASE(what_the_wire_still_holds_is_not_sent_again) {
  auto link = make_link();
  post(link, frame_kind::data, 0);
  link.on_time(21, true);
  BOOST_TEST(outgoing(link, 21).empty());
  link.on_time(41, false); // the wait begins anew
  BOOST_TEST(outgoing(link, 41).empty());
  link.on_time(42, false);
  BOOST_TEST(outgoing(link, 42).size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_idle_link_wants_nothing_before_its_heartbeat) {
  auto link = make_link();
  post(link, frame_kind::hello, 10);
  BOOST_TEST(link.due_us().value_or(0) == 31u); // to send it again
  take(link, numbered(frame_kind::hello, 1, 1), 15);
  BOOST_TEST(link.due_us().value_or(0) == 18u); // to acknowledge theirs
  outgoing(link, 18);
  BOOST_TEST(link.due_us().value_or(0) == 18 + period_us);
}

BOOST_AUTO_TEST_CASE(silence_beyond_the_timeout_is_reported_with_its_length) {
  auto link = make_link(100);
  BOOST_TEST(!link.timed_out(100 + timeout_us - 1).has_value());
  BOOST_TEST(link.timed_out(100 + timeout_us + 1).value_or(0) == timeout_us + 1);
  take(link, beat(), 3000);
  BOOST_TEST(!link.timed_out(100 + timeout_us + 1).has_value());
  BOOST_TEST(link.timed_out(3000 + timeout_us + 7).value_or(0) == timeout_us + 7);
  post(link, frame_kind::data, 7000); // what we send says nothing of the peer
  link.on_damaged_frame();            // nor does what is damaged
  BOOST_TEST(link.timed_out(3000 + timeout_us + 7).has_value());
}

BOOST_AUTO_TEST_CASE(a_peer_that_lives_but_takes_nothing_is_reported) {
  auto link = make_link();
  post(link, frame_kind::data, 0);
  std::uint64_t now_us = 0;
  for (; now_us < timeout_us; now_us += period_us) {
    take(link, beat(), now_us);
    link.on_time(now_us, false);
    outgoing(link, now_us);
    BOOST_TEST(!link.stalled(now_us).has_value());
  }
  BOOST_TEST(!link.timed_out(now_us).has_value());
  BOOST_TEST(link.stalled(now_us).value_or(0) == now_us);
  take(link, beat(1), now_us);
  BOOST_TEST(!link.stalled(now_us + timeout_us).has_value());
}

BOOST_AUTO_TEST_CASE(a_rank_that_stood_still_does_not_blame_its_peers) {
  auto link = make_link();
  post(link, frame_kind::data, 0);
  std::uint64_t now_us = 0;
  for (; now_us < 4 * period_us; now_us += period_us) { // sent again, and not acknowledged
    link.on_time(now_us, false);
    outgoing(link, now_us);
  }
  link.forgive(2 * timeout_us);
  BOOST_TEST(!link.timed_out(now_us).has_value());
  BOOST_TEST(!link.stalled(now_us).has_value());
  now_us += 2 * timeout_us;
  BOOST_TEST(!link.timed_out(now_us).has_value());
  BOOST_TEST(!link.stalled(now_us).has_value());
  now_us = 3 * timeout_us; // … but for what they are silent after it
  BOOST_TEST(link.timed_out(now_us).value_or(0) == timeout_us);
  BOOST_TEST(link.stalled(now_us).value_or(0) == timeout_us);
}

BOOST_AUTO_TEST_CASE(a_heartbeat_is_due_after_a_period_without_a_frame) {
  auto link = make_link();
  BOOST_TEST(outgoing(link, 199).empty());
  BOOST_TEST(outgoing(link, 200).size() == 1u);
  BOOST_TEST(post(link, frame_kind::data, 350).size() == 1u);
  take(link, beat(1), 350);
  BOOST_TEST(outgoing(link, 549).empty());
  BOOST_TEST(outgoing(link, 550).size() == 1u);
  take(link, beat(1), 749); // what the peer sends is no sign of ours
  BOOST_TEST(outgoing(link, 750).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_goodbye_stops_everything_but_its_own_acknowledgement) {
  auto link = make_link();
  post(link, frame_kind::data, 1);
  BOOST_TEST(!link.peer_left());
  BOOST_TEST((take(link, numbered(frame_kind::goodbye, 1), 10) == frame_verdict::deliver));
  BOOST_TEST(link.peer_left());
  BOOST_TEST(outgoing(link, 10).size() == 1u);
  BOOST_TEST(!link.due_us().has_value());
  BOOST_TEST(!link.timed_out(1'000'000'000).has_value());
  link.on_time(1'000'000'000, false);
  BOOST_TEST(outgoing(link, 1'000'000'000).empty());
  BOOST_TEST(post(link, frame_kind::data, 1'000'000'000).empty());
  take(link, numbered(frame_kind::goodbye, 1), 1'000'000'001); // it has not heard of ours
  BOOST_TEST(outgoing(link, 1'000'000'001).size() == 1u);
  BOOST_TEST(!link.closed());
  BOOST_TEST(post(link, frame_kind::goodbye, 1'000'000'002).empty());
  BOOST_TEST(link.closed());
}

BOOST_AUTO_TEST_CASE(ranks_that_disagree_are_told_apart_by_what_differs) {
  struct row {
    hello theirs;
    std::string names;
  };
  const hello mine{11, 22, "here"};
  const std::vector<row> rows{
      {{11, 22, "elsewhere"}, ""},
      {{12, 22, "here"}, "configuration"},
      {{11, 23, "here"}, "vocabulary"},
      {{12, 23, "here"}, "configuration"},
  };
  for (const auto& r : rows) {
    const auto why = compare(mine, r.theirs);
    BOOST_TEST(why.empty() == r.names.empty());
    BOOST_TEST(why.find(r.names) != std::string::npos);
  }
}
