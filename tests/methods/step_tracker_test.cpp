#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "runtime/methods/glimprouter/step_tracker.hpp"
#include "runtime/methods/method.hpp"
#include "tests/methods/thinking_words.hpp"

using namespace tokenrouter;
using namespace tokenrouter::thinking_words;

namespace {

/// One letter a token until the thinking is over: '.' nothing, S step, T thinking ended, X spent.
std::string events(const std::vector<token_id>& tokens, std::uint32_t step_tokens_max = 512,
                   std::uint32_t thinking_tokens_max = 8192) {
  const step_tracker tracker(all(), step_tokens_max, thinking_tokens_max);
  glimpse_state state;
  std::string out;
  for (const token_id token : tokens) {
    if (state.mode != 0)
      break;
    out += ".STX"[static_cast<std::size_t>(tracker.advance(token, state))];
  }
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_empty_line_ends_a_step_within_and_across_tokens) {
  struct row {
    std::vector<token_id> tokens;
    const char* wanted;
  };
  for (const auto& [tokens, wanted] :
       std::vector<row>{{{a, gap, b}, ".S."},
                        {{a, full_stop, b}, ".S."},
                        {{a, wide_gap, b}, ".S."},
                        {{a, line, line, b}, "..S."},
                        {{a, line, b, line}, "...."},
                        {{a, line, gap, b}, "..S."},
                        // Line breaks of the step before do not count.
                        {{a, gap, line, b, line, line}, ".S...S"},
                        {{a, line, line, line, line}, "..S.S"},
                        // Nor do tokens without text stand between.
                        {{a, line, eos, line}, "...S"},
                        {{gap, gap}, "SS"}}) {
    BOOST_TEST(events(tokens) == wanted);
  }
}

BOOST_AUTO_TEST_CASE(the_end_mark_is_found_within_and_across_tokens) {
  struct row {
    std::vector<token_id> tokens;
    const char* wanted;
  };
  for (const auto& [tokens, wanted] : std::vector<row>{{{a, end_mark, a}, ".T"},
                                                       {{a, end_head, end_tail, a}, "..T"},
                                                       {{a, end_head, a, end_tail}, "...."},
                                                       {{a, end_head, end_head, end_tail}, "...T"},
                                                       {{open_mark, end_tail, a}, "..."},
                                                       {{a, end_inside}, ".T"},
                                                       {{99, -1, end_mark}, "..T"}}) {
    BOOST_TEST(events(tokens) == wanted);
  }
  // A step that is cut in the middle of the mark does not hide it.
  BOOST_TEST(events({a, end_head, end_tail}, 2) == ".ST");
}

BOOST_AUTO_TEST_CASE(long_steps_are_cut) {
  BOOST_TEST(events({a, b, a, b, a, b, a}, 3) == "..S..S.");
  BOOST_TEST(events({a, gap, a, b, a}, 3) == ".S..S");
}

BOOST_AUTO_TEST_CASE(repetition_and_budget_spend_the_thinking) {
  BOOST_TEST(events({a, gap, a, gap, a, gap, b}) == ".S.S.X");
  BOOST_TEST(events({a, gap, b, gap, b, gap}) == ".S.S.X");
  BOOST_TEST(events({a, gap, b, gap, a, gap, b, gap}) == ".S.S.S.S");
  // The same text in other tokens is the same step.
  BOOST_TEST(events({b, gap, a, gap, a, line, line}) == ".S.S..X");
  BOOST_TEST(events({a, b, a, b, a}, 512, 4) == "...X");
  BOOST_TEST(events({a, b, a, gap}, 512, 4) == "...X");
  BOOST_TEST(events({a, b, a, end_mark}, 512, 4) == "...T");
}

BOOST_AUTO_TEST_CASE(the_state_is_small_enough_to_travel) {
  method_state state;
  state.set(glimpse_state{});
  BOOST_TEST(state.size_bytes() == 56u); // no padding: the bytes of equal states are equal
}

BOOST_AUTO_TEST_CASE(an_open_mark_is_one_after_the_last_end) {
  const std::pair<const char*, bool> rows[] = {{"", false},
                                               {"<think>", true},
                                               {"<think>\n\n</think>\n\n", false},
                                               {"<think>x</think> again <think>\n", true},
                                               {"</think>", false}};
  for (const auto& [text, wanted] : rows)
    BOOST_TEST(step_tracker::is_thinking_open(text) == wanted, text);
}
