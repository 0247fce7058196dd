#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/policy/handoff.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_handoff_is_judged_by_turn_offset_and_overlap) {
  struct row {
    const char* what;
    turn_number known_turn;
    std::vector<token_id> known;
    turn_number turn;
    std::uint32_t offset;
    std::vector<token_id> tokens;
    handoff_verdict verdict;
  };
  const std::vector<row> rows{
      {"first send", 0, {}, 1, 0, {1, 2, 3}, handoff_verdict::accept},
      {"suffix", 1, {1, 2, 3}, 2, 3, {4}, handoff_verdict::accept},
      {"suffix that repeats own last token", 1, {1, 2, 3}, 2, 2, {3, 4}, handoff_verdict::accept},
      {"own token handed back unchanged", 3, {1, 2, 3}, 5, 2, {3}, handoff_verdict::accept},
      {"the same turn again", 2, {1, 2}, 2, 1, {2, 3}, handoff_verdict::stale},
      {"an older turn", 4, {1, 2}, 2, 1, {2, 3}, handoff_verdict::stale},
      {"a gap", 1, {1, 2}, 2, 3, {4}, handoff_verdict::need_gap},
      {"tokens unknown here", 0, {}, 6, 50, {4}, handoff_verdict::need_gap},
      {"another token at a known position", 1, {1, 2, 3}, 2, 2, {9, 4}, handoff_verdict::diverged},
      {"shorter than what is known", 1, {1, 2, 3}, 2, 1, {2}, handoff_verdict::diverged},
  };
  for (const auto& r : rows)
    BOOST_TEST((judge_handoff({r.known_turn, r.known}, {r.turn, r.offset, r.tokens}) == r.verdict),
               r.what);
}
