#include "runtime/policy/delayed_batching.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

/// B − 1: how many a model may leave waiting.
std::uint64_t slack(const batching_thresholds& list, std::uint32_t live_requests) {
  if (list.empty() || live_requests == 0)
    return 0;
  const std::size_t entry = std::min<std::size_t>(live_requests, list.size()) - 1;
  return list[entry] > 0 ? list[entry] - 1 : 0;
}

} // namespace

std::uint32_t threshold_in_force(const delayed_batching_view& view) {
  check(view.self < view.models.size() && view.replicas >= 1, "a threshold is of some replica");
  std::uint64_t total = 0;
  for (const auto& list : view.models)
    total += slack(list, view.live_requests);
  std::uint64_t mine = slack(view.models[view.self], view.live_requests);
  if (total > 0 && total >= view.live_requests)
    mine = mine * (view.live_requests - 1) / total;
  return static_cast<std::uint32_t>(1 + mine / view.replicas);
}

} // namespace tokenrouter
