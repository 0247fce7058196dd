#include <boost/test/unit_test.hpp>

#include "actors/link_state.hpp"

using namespace tokenrouter;

namespace {

constexpr std::uint64_t timeout_us = 5000;

frame_header data(std::uint64_t sequence, std::uint64_t acknowledged = 0, std::uint32_t epoch = 0) {
  frame_header x;
  x.source_rank = 1;
  x.epoch = epoch;
  x.sequence = sequence;
  x.acknowledged = acknowledged;
  return x;
}

frame_header control(frame_kind kind, std::uint64_t acknowledged = 0, std::uint32_t epoch = 0) {
  auto x = data(0, acknowledged, epoch);
  x.kind = kind;
  return x;
}

} // namespace

BOOST_AUTO_TEST_CASE(only_data_frames_are_numbered) {
  link_state link({3}, timeout_us, 0);
  BOOST_TEST(link.next_header(frame_kind::hello, 1).sequence == 0u);
  const auto first = link.next_header(frame_kind::data, 2);
  BOOST_TEST(first.sequence == 1u);
  BOOST_TEST(first.source_rank == 3u);
  BOOST_TEST((first.kind == frame_kind::data));
  BOOST_TEST(link.next_header(frame_kind::heartbeat, 3).sequence == 0u);
  BOOST_TEST(link.next_header(frame_kind::data, 4).sequence == 2u);
  BOOST_TEST(link.next_header(frame_kind::goodbye, 5).sequence == 0u);
}

BOOST_AUTO_TEST_CASE(every_frame_acknowledges_what_was_received) {
  link_state link({0}, timeout_us, 0);
  BOOST_TEST(link.next_header(frame_kind::hello, 1).acknowledged == 0u);
  link.on_frame(data(1), 2);
  link.on_frame(data(2), 3);
  BOOST_TEST(link.next_header(frame_kind::heartbeat, 4).acknowledged == 2u);
  BOOST_TEST(link.next_header(frame_kind::data, 5).acknowledged == 2u);
}

BOOST_AUTO_TEST_CASE(what_the_peer_acknowledges_is_no_longer_open) {
  link_state link({0}, timeout_us, 0);
  for (int i = 0; i < 3; ++i)
    link.next_header(frame_kind::data, 1);
  BOOST_TEST(link.unacknowledged() == 3u);
  link.on_frame(control(frame_kind::heartbeat, 2), 2);
  BOOST_TEST(link.unacknowledged() == 1u);
  link.on_frame(control(frame_kind::heartbeat, 1), 3); // an older count takes nothing back
  BOOST_TEST(link.unacknowledged() == 1u);
  link.on_frame(data(1, 3), 4);
  BOOST_TEST(link.unacknowledged() == 0u);
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
      {"a control frame between",
       {data(1)},
       control(frame_kind::heartbeat),
       frame_verdict::control},
      {"after a control frame",
       {data(1), control(frame_kind::heartbeat)},
       data(2),
       frame_verdict::deliver},
      {"one is missing", {data(1)}, data(3), frame_verdict::broken},
      {"the first is missing", {}, data(2), frame_verdict::broken},
      {"twice", {data(1), data(2)}, data(2), frame_verdict::broken},
      {"an older one", {data(1), data(2)}, data(1), frame_verdict::broken},
      {"no number", {}, data(0), frame_verdict::broken},
      {"acknowledges what was never sent", {}, data(1, 1), frame_verdict::broken},
      {"control acknowledges what was never sent",
       {},
       control(frame_kind::heartbeat, 1),
       frame_verdict::broken},
      {"another incarnation", {data(1, 0, 4)}, data(2, 0, 5), frame_verdict::drop},
      {"an older incarnation", {data(1, 0, 4)}, data(2, 0, 3), frame_verdict::drop},
      {"the incarnation of the first frame",
       {data(1, 0, 4)},
       data(2, 0, 4),
       frame_verdict::deliver},
      {"control of another incarnation",
       {data(1, 0, 4)},
       control(frame_kind::goodbye, 0, 5),
       frame_verdict::drop},
  };
  for (const auto& r : rows) {
    link_state link({0}, timeout_us, 0);
    for (const auto& x : r.before)
      link.on_frame(x, 1);
    BOOST_TEST((link.on_frame(r.frame, 2) == r.verdict), r.what);
  }
}

BOOST_AUTO_TEST_CASE(a_frame_of_another_incarnation_leaves_no_trace) {
  link_state link({0}, timeout_us, 0);
  link.on_frame(data(1, 0, 4), 10);
  link.on_frame(control(frame_kind::goodbye, 0, 5), 4000);
  BOOST_TEST(!link.peer_left());
  BOOST_TEST(link.timed_out(10 + timeout_us + 1).has_value()); // nor is it a sign of life
  BOOST_TEST((link.on_frame(data(2, 0, 4), 4001) == frame_verdict::deliver));
}

BOOST_AUTO_TEST_CASE(silence_beyond_the_timeout_is_reported_with_its_length) {
  link_state link({0}, timeout_us, 100);
  BOOST_TEST(!link.timed_out(100 + timeout_us - 1).has_value());
  BOOST_TEST(link.timed_out(100 + timeout_us + 1).value_or(0) == timeout_us + 1);
  link.on_frame(control(frame_kind::heartbeat), 3000);
  BOOST_TEST(!link.timed_out(100 + timeout_us + 1).has_value());
  BOOST_TEST(link.timed_out(3000 + timeout_us + 7).value_or(0) == timeout_us + 7);
  link.next_header(frame_kind::data, 7000); // what we send says nothing of the peer
  BOOST_TEST(link.timed_out(3000 + timeout_us + 7).has_value());
}

BOOST_AUTO_TEST_CASE(a_heartbeat_is_due_after_a_period_without_a_frame) {
  link_state link({0}, timeout_us, 0);
  BOOST_TEST(!link.heartbeat_due(199, 200));
  BOOST_TEST(link.heartbeat_due(200, 200));
  link.next_header(frame_kind::data, 150);
  BOOST_TEST(!link.heartbeat_due(349, 200));
  BOOST_TEST(link.heartbeat_due(350, 200));
  link.next_header(frame_kind::heartbeat, 350);
  BOOST_TEST(!link.heartbeat_due(500, 200));
  link.on_frame(data(1), 549); // what the peer sends is no sign of ours
  BOOST_TEST(link.heartbeat_due(550, 200));
}

BOOST_AUTO_TEST_CASE(a_goodbye_stops_heartbeats_and_timeouts) {
  link_state link({0}, timeout_us, 0);
  BOOST_TEST(!link.peer_left());
  BOOST_TEST((link.on_frame(control(frame_kind::goodbye), 10) == frame_verdict::control));
  BOOST_TEST(link.peer_left());
  BOOST_TEST(!link.timed_out(1'000'000'000).has_value());
  BOOST_TEST(!link.heartbeat_due(1'000'000'000, 200));
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
