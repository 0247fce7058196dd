#include "gpu/graph_cache.hpp"

#include <algorithm>

namespace tokenrouter::gpu {

std::uint32_t graph_size_for(std::uint32_t count) {
  const auto found = std::ranges::lower_bound(graph_sizes, count);
  return found == graph_sizes.end() ? 0 : *found;
}

} // namespace tokenrouter::gpu
