#include "actors/planner_state.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/planning/threshold_lists.hpp"

namespace tokenrouter {

namespace {

/// Enough for a first plan; what comes later replaces it if it says otherwise. Steps: half of a
/// first report's, since a plan halves them.
constexpr std::uint64_t steps_wanted = 8;
constexpr std::uint64_t moves_wanted = 64;

/// Ticks of the slowest model's step: finer grids cost states and change no threshold.
constexpr double grid_ticks = 40;
constexpr std::uint32_t live_requests_planned_max = 16;
constexpr std::uint32_t states_max = 4'000;
constexpr std::uint64_t table_states_max = 40'000;

/// Gains below that are lost in what the model of the job leaves out.
constexpr double gain_wanted = 0.03;

/// What must change before thresholds are worth computing again.
constexpr double share_change = 0.05;
constexpr double latency_change = 0.25;

struct line {
  double first_ms = 0;
  double row_ms = 0;
};

/// Least squares through the mean step time at each number of rows, each weighted by its count;
/// never falling with rows.
line fit(const std::vector<step_bucket>& steps) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto count = static_cast<double>(steps[i].count);
    const double total_ms = static_cast<double>(steps[i].total_us) / 1000.0;
    const auto rows = static_cast<double>(i);
    n += count;
    x += count * rows;
    y += total_ms;
    xx += count * rows * rows;
    xy += rows * total_ms;
  }
  line out;
  const double spread = n * xx - x * x;
  if (spread > 0)
    out.row_ms = std::max(0.0, (n * xy - x * y) / spread);
  out.first_ms = std::max(1e-3, (y - out.row_ms * x) / n);
  return out;
}

bool differs(double a, double b, double share) {
  return std::abs(a - b) > share * std::max(std::abs(a), std::abs(b));
}

} // namespace

planner_state::planner_state(planner_config config) : config_(std::move(config)) {
  start_over();
}

void planner_state::start_over() {
  planned_.reset();
  sums_.assign(config_.models, {});
  for (auto& sums : sums_) {
    sums.moves.assign(config_.models, 0);
    sums.committed_tokens.assign(config_.models, 0);
  }
}

void planner_state::add(const replica_report& x) {
  if (x.from.model.value >= sums_.size() || x.moves.size() != config_.models)
    return;
  auto& sums = sums_[x.from.model.value];
  if (sums.steps.size() < x.steps.size())
    sums.steps.resize(x.steps.size());
  for (std::size_t i = 0; i < x.steps.size(); ++i) {
    sums.steps[i].count += x.steps[i].count;
    sums.steps[i].total_us += x.steps[i].total_us;
    sums.step_count += x.steps[i].count;
  }
  for (std::size_t i = 0; i < x.moves.size(); ++i) {
    sums.moves[i] += x.moves[i];
    sums.committed_tokens[i] += x.committed_tokens[i];
    sums.move_count += x.moves[i];
  }
  live_requests_max_ = std::max(live_requests_max_, x.live_requests_max);
}

std::optional<routing_model> planner_state::measured() const {
  routing_model out;
  out.entry = config_.entry.value;
  double slowest_ms = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const auto& sums = sums_[i];
    std::vector<double> chances(config_.models, 0.0), tokens(config_.models, 0.0);
    const bool visited = std::any_of(sums_.begin(), sums_.end(),
                                     [&](const auto& other) { return other.moves[i] > 0; });
    if (sums.step_count < steps_wanted || sums.move_count < moves_wanted) {
      if (visited || i == config_.entry.value)
        return std::nullopt;
      chances[i] = 1;
      out.latencies_ms.push_back(1);
      out.row_latencies_ms.push_back(0);
    } else {
      for (std::size_t j = 0; j < config_.models; ++j) {
        const auto moves = static_cast<double>(sums.moves[j]);
        chances[j] = moves / static_cast<double>(sums.move_count);
        tokens[j] = moves > 0 ? static_cast<double>(sums.committed_tokens[j]) / moves : 0.0;
      }
      const line latency = fit(sums.steps);
      out.latencies_ms.push_back(latency.first_ms);
      out.row_latencies_ms.push_back(latency.row_ms);
      slowest_ms = std::max(slowest_ms, latency.first_ms);
    }
    out.routing.push_back(std::move(chances));
    out.committed_tokens.push_back(std::move(tokens));
  }
  out.grid_ms = std::max(slowest_ms, 1e-3) / grid_ticks;
  return out;
}

bool planner_state::changed(const routing_model& now) const {
  if (!planned_ || planned_live_requests_ < std::min(live_requests_max_, live_requests_planned_max))
    return true;
  for (std::size_t i = 0; i < config_.models; ++i) {
    if (differs(now.latencies_ms[i], planned_->latencies_ms[i], latency_change))
      return true;
    for (std::size_t j = 0; j < config_.models; ++j)
      if (std::abs(now.routing[i][j] - planned_->routing[i][j]) > share_change)
        return true;
  }
  return false;
}

std::optional<std::vector<batching_thresholds>> planner_state::plan() {
  auto now = measured();
  if (!now || !changed(*now))
    return std::nullopt;
  planned_live_requests_ = std::min(live_requests_max_, live_requests_planned_max);
  planned_ = now;
  // What was measured counts half from now on: the job may change.
  for (auto& sums : sums_) {
    for (auto& bucket : sums.steps) {
      bucket.count /= 2;
      bucket.total_us /= 2;
    }
    sums.step_count /= 2;
  }
  for (std::uint32_t live = planned_live_requests_; live > 0; live /= 2) {
    auto lists =
        plan_threshold_lists(*now, live, {states_max, table_states_max, config_.stop.get()});
    if (!lists && lists.error().code == errc::cancelled)
      return std::nullopt;
    if (!lists)
      continue;
    for (std::size_t n = 0; n < lists->rates.size(); ++n)
      if (lists->rates[n].tokens_per_second <
          (1 + gain_wanted) * lists->no_delay_tokens_per_second[n])
        for (auto& list : lists->of_model)
          list[n] = 1;
    std::vector<batching_thresholds> out = config_.configured;
    out.resize(config_.models);
    for (std::size_t i = 0; i < config_.models; ++i)
      if (config_.automatic[i])
        out[i] = lists->of_model[i];
    return out;
  }
  return std::nullopt;
}

} // namespace tokenrouter
