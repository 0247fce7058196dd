#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/messages.hpp"
#include "runtime/planning/routing_model.hpp"
#include "runtime/policy/delayed_batching.hpp"

namespace tokenrouter {

struct planner_config {
  std::uint32_t models = 1;
  model_id entry;
  std::vector<bool> automatic;                 ///< of each model: its thresholds are set here
  std::vector<batching_thresholds> configured; ///< of the others
  std::shared_ptr<const std::atomic<bool>>
      stop; ///< once true, a plan under way is given up; or null
};

/// What all replicas measured, and the thresholds that follow from it. Free of CAF and clocks.
class planner_state {
 public:
  explicit planner_state(planner_config config);

  void add(const replica_report& x);

  /// The job is another one now: what was measured of it no longer counts.
  void start_over();

  /// The job as measured: step latencies (fitted: first row, each further row), where requests go
  /// after a step and what that commits. None until every model that requests visit has been seen
  /// often enough. Models that no request visits keep their place with a row that stays.
  std::optional<routing_model> measured() const;

  /// New thresholds for every model, if what was measured has changed enough since the last time.
  /// May take a second. None also where the model of the job is too large to solve.
  std::optional<std::vector<batching_thresholds>> plan();

 private:
  struct model_sums {
    std::vector<step_bucket> steps; ///< by rows
    std::vector<std::uint64_t> moves;
    std::vector<std::uint64_t> committed_tokens;
    std::uint64_t step_count = 0;
    std::uint64_t move_count = 0;
  };

  bool changed(const routing_model& now) const;

  planner_config config_;
  std::vector<model_sums> sums_;
  std::uint32_t live_requests_max_ = 1;
  std::uint32_t planned_live_requests_ = 0;
  std::optional<routing_model> planned_;
};

} // namespace tokenrouter
