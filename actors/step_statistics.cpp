#include "actors/step_statistics.hpp"

#include <algorithm>
#include <utility>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

/// The first report comes early, so that thresholds don't wait for seconds where a step takes 20
/// ms; each further one after twice as many steps, up to a bound.
constexpr std::uint32_t first_report_steps = 16, steps_per_report_max = 128;

/// A handoff brings what peers made since the last turn, a dozen tokens where one in ten comes
/// here; many more are a prefill.
constexpr std::uint32_t decode_tokens_per_row_max = 32;

} // namespace

step_statistics::step_statistics(replica_id self, std::uint32_t models)
    : steps_per_report_(first_report_steps) {
  noted_.from = self;
  noted_.moves.assign(models, 0);
  noted_.committed_tokens.assign(models, 0);
}

void step_statistics::note_step(std::uint32_t rows, std::uint32_t tokens, std::uint32_t step_us) {
  if (rows == 0 || rows > limits::reported_rows_max || tokens > rows * decode_tokens_per_row_max)
    return;
  if (noted_.steps.size() < rows)
    noted_.steps.resize(rows);
  auto& bucket = noted_.steps[rows - 1];
  ++bucket.count;
  bucket.total_us += step_us;
  ++steps_;
}

void step_statistics::note_move(model_id target, std::uint32_t committed) {
  if (target.value >= noted_.moves.size())
    return;
  ++noted_.moves[target.value];
  noted_.committed_tokens[target.value] += committed;
}

std::optional<replica_report> step_statistics::take_report(std::uint32_t live_requests) {
  noted_.live_requests_max = std::max(noted_.live_requests_max, live_requests);
  if (steps_ < steps_per_report_)
    return std::nullopt;
  steps_per_report_ = std::min(2 * steps_per_report_, steps_per_report_max);
  replica_report fresh;
  fresh.from = noted_.from;
  fresh.moves.assign(noted_.moves.size(), 0);
  fresh.committed_tokens.assign(noted_.moves.size(), 0);
  steps_ = 0;
  return std::exchange(noted_, std::move(fresh));
}

} // namespace tokenrouter
