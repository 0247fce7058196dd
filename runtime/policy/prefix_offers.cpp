#include "runtime/policy/prefix_offers.hpp"

#include <algorithm>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

/// Of so many leading tokens, those that could be added.
std::uint32_t added_tokens(const prefix_need& need, std::uint32_t tokens) {
  const std::uint32_t usable = std::min(tokens, need.tokens_max);
  const std::uint32_t whole = usable - usable % limits::block_tokens;
  return whole > need.have_tokens ? whole - need.have_tokens : 0;
}

} // namespace

bool worth_asking(const prefix_need& need) {
  const std::uint32_t most = added_tokens(need, need.tokens_max);
  return need.min_tokens > 0 && most > 0 && most >= need.min_tokens;
}

std::optional<std::size_t> choose_offer(const prefix_need& need,
                                        std::span<const std::uint32_t> offered_tokens) {
  if (offered_tokens.empty() || need.min_tokens == 0)
    return std::nullopt;
  const auto best = std::max_element(offered_tokens.begin(), offered_tokens.end(),
                                     [&](std::uint32_t a, std::uint32_t b) {
                                       return added_tokens(need, a) < added_tokens(need, b);
                                     });
  const std::uint32_t added = added_tokens(need, *best);
  if (added == 0 || added < need.min_tokens)
    return std::nullopt;
  return static_cast<std::size_t>(best - offered_tokens.begin());
}

} // namespace tokenrouter
