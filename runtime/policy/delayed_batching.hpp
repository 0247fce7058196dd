#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tokenrouter {

/// A model's threshold by number of live requests: entry n − 1 holds for n, the last for all above.
/// Empty: 1, a step starts as soon as one sequence waits.
using batching_thresholds = std::vector<std::uint32_t>;

/// What one replica knows when it asks whether a step may start.
struct delayed_batching_view {
  std::span<const batching_thresholds> models; ///< of every model of the job
  std::size_t self = 0;                        ///< index into `models`
  std::uint32_t replicas = 1;                  ///< of this model
  std::uint32_t live_requests = 0;             ///< in the whole job, as announced here
};

/// Sequences that must wait before this replica starts a step.
///
/// Progress: with B_i the thresholds in force, Σ (B_i − 1) over all replicas is below the number of
/// live requests. If no replica could start, at most B_i − 1 requests would wait at each, fewer in
/// all than there are, so one is elsewhere and will arrive. Lists that break the rule for some
/// number of live requests are scaled down to it; what a model is given is shared by its replicas.
std::uint32_t threshold_in_force(const delayed_batching_view& view);

} // namespace tokenrouter
