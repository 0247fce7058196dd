#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tokenrouter {

/// What one replica has of a prompt's start, and when it is worth asking its siblings for more.
struct prefix_need {
  std::uint32_t have_tokens = 0; ///< whole blocks
  std::uint32_t tokens_max = 0;  ///< more than that can't be used
  std::uint32_t min_tokens = 0;  ///< fewer than that are computed faster; 0: never ask
};

/// At least `min_tokens` in whole blocks are missing.
bool worth_asking(const prefix_need& need);

/// Which sibling to fetch from, by how many leading tokens each has: the one with the most, among
/// equals the first; none if no offer adds at least `min_tokens`.
std::optional<std::size_t> choose_offer(const prefix_need& need,
                                        std::span<const std::uint32_t> offered_tokens);

} // namespace tokenrouter
