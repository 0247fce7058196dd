#include "runtime/policy/batching.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"

namespace tokenrouter {

std::vector<planned_row> plan_batch(std::span<const batch_candidate> candidates,
                                    batch_limits limits) {
  check(limits.rows_max >= 1 && limits.prefill_chunk_tokens >= 1, "a step has room for one row");
  std::vector<batch_candidate> order(candidates.begin(), candidates.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.age < b.age; });

  std::vector<planned_row> rows;
  rows.reserve(std::min<std::size_t>(order.size(), limits.rows_max));
  std::uint32_t budget_tokens = limits.prefill_chunk_tokens;
  for (const auto& candidate : order) {
    if (rows.size() == limits.rows_max)
      break;
    check(candidate.lacking_tokens >= 1, "a candidate lacks at least one token");
    if (candidate.lacking_tokens == 1) {
      rows.push_back({candidate.index, 1, true});
      continue;
    }
    const std::uint32_t count = std::min(candidate.lacking_tokens, budget_tokens);
    if (count == 0)
      continue;
    budget_tokens -= count;
    rows.push_back({candidate.index, count, count == candidate.lacking_tokens});
  }
  return rows;
}

} // namespace tokenrouter
