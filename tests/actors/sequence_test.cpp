#include <boost/test/unit_test.hpp>

#include "actors/sequence.hpp"

using namespace tokenrouter;

namespace {

constexpr std::uint32_t prompt = 10;

role_needs window_of(std::uint32_t positions) {
  role_needs needs;
  needs.head_window_positions = positions;
  return needs;
}

role_needs tail_of(std::uint32_t positions) {
  role_needs needs;
  needs.tail_positions = positions;
  return needs;
}

/// A request with a prompt of ten tokens and a few more, whose first `kv` positions were run.
sequence with_length(std::uint32_t length, std::uint32_t kv = 0, std::uint32_t recorded = 0) {
  sequence s;
  s.tokens.assign(length, 1);
  s.spec.prompt_tokens = prompt;
  s.kv_tokens = kv;
  s.recorded_positions = recorded;
  return s;
}

/// Runs all it lacks in chunks, and returns where the window of the last one starts.
std::uint32_t run(sequence& s, std::uint32_t chunk_tokens) {
  std::uint32_t start = 0;
  while (s.lacking_tokens() > 0) {
    const std::uint32_t count = std::min(chunk_tokens, s.lacking_tokens());
    start = s.window_start(count);
    s.advance(count, false);
  }
  return start;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_window_is_run_again_only_where_its_positions_are_not_recorded) {
  struct row {
    std::uint32_t length, kv, recorded; ///< of the request
    std::uint32_t window;
    std::uint32_t answer_from, window_start; ///< expected
  };
  const row rows[] = {
      {10, 0, 0, 3, 9, 9},     // the prompt's last position is the first of any window
      {11, 10, 1, 3, 10, 9},   // the window grows with the output
      {12, 11, 2, 3, 11, 9},   //
      {15, 14, 5, 3, 14, 9},   //
      {15, 14, 2, 3, 14, 12},  // just enough is known
      {15, 14, 1, 3, 12, 12},  // one position of three is not
      {15, 14, 0, 3, 12, 12},  // KV alone is not enough
      {15, 0, 0, 3, 12, 12},   // all was evicted
      {11, 0, 0, 3, 9, 9},     // likewise, soon after the prompt
      {15, 0, 0, 16, 9, 9},    // a window longer than the output
      {20, 14, 5, 3, 17, 17},  // a peer wrote more than a window
      {20, 17, 2, 6, 14, 14},  //
      {20, 17, 3, 6, 17, 14},  //
      {15, 14, 0, 1, 14, 14},  // no window
      {15, 14, 14, 3, 14, 9}}; // what the prompt's positions were answered for is left alone
  for (const auto& r : rows) {
    BOOST_TEST_CONTEXT("length " << r.length << ", kv " << r.kv << ", recorded " << r.recorded
                                 << ", window " << r.window) {
      for (const std::uint32_t chunk : {1u, 2u, 5u, 100u}) {
        auto s = with_length(r.length, r.kv, r.recorded);
        s.prepare(window_of(r.window));
        BOOST_TEST(s.answer_from == r.answer_from);
        BOOST_TEST(s.kv_tokens <= s.answer_from);
        BOOST_TEST(run(s, chunk) == r.window_start);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(records_end_with_the_kv_that_holds_them) {
  auto s = with_length(20, 20, 6);
  s.cut_kv(18);
  BOOST_TEST(s.recorded_positions == 4u);
  s.cut_kv(15);
  BOOST_TEST(s.recorded_positions == 1u);
  s.cut_kv(12);
  BOOST_TEST(s.recorded_positions == 0u);
  s = with_length(20, 20, 6);
  s.cut_kv(0);
  BOOST_TEST(s.recorded_positions == 0u);
}

BOOST_AUTO_TEST_CASE(kv_from_the_cache_or_of_unanswered_positions_has_no_records) {
  auto s = with_length(40);
  s.prepare(window_of(3));
  s.advance(32, true);
  BOOST_TEST(s.recorded_positions == 0u);
  s.advance(4, false);
  BOOST_TEST(s.recorded_positions == 0u);
  BOOST_TEST(s.window_start(4) == 37u);
  s.advance(4, false);
  BOOST_TEST(s.recorded_positions == 3u);
  // A gap starts anew.
  s.tokens.resize(46, 1);
  s.answer_from = 44;
  s.advance(6, false);
  BOOST_TEST(s.recorded_positions == 2u);
}

BOOST_AUTO_TEST_CASE(a_judge_has_the_window_of_every_position_it_may_propose_at) {
  auto s = with_length(20, 16, 1);
  s.tentative.resize(4);
  s.judging = true;
  s.prepare(window_of(3));
  BOOST_TEST(s.answer_from == 13u);
  s = with_length(20, 15, 2);
  s.tentative.resize(4);
  s.judging = true;
  s.prepare(window_of(3));
  BOOST_TEST(s.answer_from == 15u);
}

BOOST_AUTO_TEST_CASE(a_tail_is_answered_without_the_prompt_before_it) {
  struct row {
    std::uint32_t length, kv;
    std::size_t known;
    std::uint32_t tail, answer_from;
  };
  const row rows[] = {{50, 0, 0, 4, 46},  {50, 30, 2, 4, 46}, {50, 48, 2, 4, 48},
                      {50, 48, 1, 4, 46}, {3, 0, 0, 4, 0},    {50, 49, 4, 1, 49}};
  for (const auto& r : rows) {
    auto s = with_length(r.length, r.kv);
    s.tail_entropies.resize(r.known);
    s.prepare(tail_of(r.tail));
    BOOST_TEST(s.answer_from == r.answer_from, "length " << r.length << ", kv " << r.kv
                                                         << ", known " << r.known << ": "
                                                         << s.answer_from);
  }
}
