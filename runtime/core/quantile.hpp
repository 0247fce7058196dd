#pragma once

#include <cstddef>
#include <span>

namespace tokenrouter {

/// The value at that share of the way through `ascending` (nearest rank); 0 if there is none.
template <class T>
T quantile(std::span<const T> ascending, double share) {
  if (ascending.empty())
    return T{};
  return ascending[static_cast<std::size_t>(share * static_cast<double>(ascending.size() - 1) +
                                            0.5)];
}

} // namespace tokenrouter
