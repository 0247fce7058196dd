#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/messages.hpp"

namespace tokenrouter {

/// What a replica learns of its own steps, for thresholds that are set while the job runs. Reports
/// by count of steps, not by a clock, so that a simulation repeats itself.
class step_statistics {
 public:
  step_statistics(replica_id self, std::uint32_t models);

  /// A step of `rows` rows that ran `tokens` tokens in `step_us`. Long prefills are left out: they
  /// say nothing of what a decode step takes.
  void note_step(std::uint32_t rows, std::uint32_t tokens, std::uint32_t step_us);

  /// A proposal was routed: the request's next step is on `target`, `committed` tokens became
  /// final.
  void note_move(model_id target, std::uint32_t committed);

  /// Every so many steps, fewer at the beginning: what was noted since the last report.
  std::optional<replica_report> take_report(std::uint32_t live_requests);

 private:
  replica_report noted_;
  std::uint32_t steps_per_report_;
  std::uint32_t steps_ = 0;
};

} // namespace tokenrouter
