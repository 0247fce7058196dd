#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

struct placement_wish {
  std::optional<rank_id> rank;    ///< fixed by the config
  std::uint64_t weight_bytes = 0; ///< memory of the model, for balancing
};

/// Chooses the rank of every replica. Fixed ones stay; a free `entry` (index into `wishes`: the
/// first replica of the entry model) goes to rank 0, where clients come in; the others go, heaviest
/// first, to the rank that carries the least weight so far, counting the fixed ones (ties: fewer
/// replicas, then the lower rank). Deterministic, so every rank computes the same map. Requires
/// rank_count ≥ 1 and fixed ranks below it.
std::vector<rank_id> place_replicas(std::span<const placement_wish> wishes, std::size_t entry,
                                    std::uint32_t rank_count);

} // namespace tokenrouter
