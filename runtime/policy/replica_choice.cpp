#include "runtime/policy/replica_choice.hpp"

#include <algorithm>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

/// FNV-1a over the first blocks of the prompt.
std::uint64_t start_hash(std::span<const token_id> prompt) {
  constexpr std::size_t tokens_max = std::size_t{4} * limits::block_tokens;
  std::uint64_t h = 14695981039346656037u;
  for (const token_id token : prompt.first(std::min(prompt.size(), tokens_max)))
    h = (h ^ static_cast<std::uint32_t>(token)) * 1099511628211u;
  return h ^ (h >> 32);
}

} // namespace

std::uint16_t choose_replica(std::span<const std::uint32_t> live_requests,
                             std::span<const token_id> prompt) {
  check(!live_requests.empty(), "a model has at least one replica");
  const std::uint32_t least = *std::min_element(live_requests.begin(), live_requests.end());
  if (least == lost_replica)
    return no_replica;
  std::vector<std::uint16_t> equals;
  for (std::size_t i = 0; i < live_requests.size(); ++i)
    if (live_requests[i] == least)
      equals.push_back(static_cast<std::uint16_t>(i));
  return equals[equals.size() == 1 ? 0 : start_hash(prompt) % equals.size()];
}

} // namespace tokenrouter
