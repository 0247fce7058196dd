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

/// Chooses the rank of every model. Fixed ones stay; a free entry model goes to rank 0, where
/// clients come in; the others go, heaviest first, to the rank that carries the least weight so
/// far, counting the fixed ones (ties: fewer models, then the lower rank). Deterministic, so every
/// rank computes the same map. Requires rank_count ≥ 1 and fixed ranks below it.
std::vector<rank_id> place_models(std::span<const placement_wish> wishes, model_id entry,
                                  std::uint32_t rank_count);

} // namespace tokenrouter
