#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tokenrouter {

/// A backend's place among those that run one replica together: tensor parallelism, each with its
/// share of every layer. They are given the same steps in the same order; number 0 leads: only its
/// results are used.
struct shard_group {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
  std::vector<std::byte> id; ///< of the group, by which its members meet; empty if it has one
  /// Once true, set by any thread: the others may be gone, so nobody waits for them. May be null.
  std::shared_ptr<const std::atomic<bool>> stop;

  bool leads() const { return index == 0; }
  bool stopped() const { return stop && *stop; }
};

} // namespace tokenrouter
