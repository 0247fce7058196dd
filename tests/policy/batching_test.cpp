#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/policy/batching.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(steps_are_formed_oldest_first_within_rows_and_prefill_budget) {
  struct row {
    const char* what;
    std::vector<batch_candidate> candidates; ///< index, lacking, age
    batch_limits limits;
    std::vector<planned_row> planned;
  };
  const std::vector<row> rows{
      {"nothing waits", {}, {4, 16}, {}},
      {"decodes by age", {{0, 1, 9}, {1, 1, 3}}, {4, 16}, {{1, 1, true}, {0, 1, true}}},
      {"the row limit cuts the youngest",
       {{0, 1, 1}, {1, 1, 2}, {2, 1, 3}},
       {2, 16},
       {{0, 1, true}, {1, 1, true}}},
      {"a long prompt is cut", {{0, 100, 1}}, {4, 16}, {{0, 16, false}}},
      {"its last chunk proposes", {{0, 16, 1}}, {4, 16}, {{0, 16, true}}},
      {"decodes cost no prefill budget",
       {{0, 20, 1}, {1, 1, 2}},
       {4, 16},
       {{0, 16, false}, {1, 1, true}}},
      {"suffixes share the budget by age",
       {{0, 10, 2}, {1, 3, 1}, {2, 9, 3}},
       {4, 16},
       {{1, 3, true}, {0, 10, true}, {2, 3, false}}},
      {"no budget left: the row waits",
       {{0, 16, 1}, {1, 2, 2}, {2, 1, 3}},
       {4, 16},
       {{0, 16, true}, {2, 1, true}}},
  };
  for (const auto& r : rows)
    BOOST_TEST((plan_batch(r.candidates, r.limits) == r.planned), r.what);
}
