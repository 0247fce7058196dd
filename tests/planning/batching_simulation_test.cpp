#include <boost/test/unit_test.hpp>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "runtime/planning/markov.hpp"

using namespace tokenrouter;

namespace {

/// Every request by itself, on a clock of ticks: shares no code and no state space with the chain.
class simulation {
 public:
  simulation(const routing_model& model, std::uint32_t live_requests,
             std::vector<std::uint32_t> thresholds, std::uint64_t seed)
      : model_(model), thresholds_(std::move(thresholds)), place_(live_requests, model.entry),
        in_batch_(live_requests, false), ends_at_tick_(model.models(), 0),
        busy_(model.models(), false), random_(seed) {
    launch();
  }

  /// Tokens committed during the next so many ticks.
  double run(std::uint64_t ticks) {
    double tokens = 0;
    for (const std::uint64_t until = now_tick_ + ticks; now_tick_ < until;) {
      ++now_tick_;
      std::vector<std::uint32_t> moved_to = place_;
      for (std::uint32_t i = 0; i < busy_.size(); ++i)
        if (busy_[i] && ends_at_tick_[i] == now_tick_) {
          busy_[i] = false;
          tokens += end_batch(i, moved_to);
        }
      place_ = moved_to;
      launch();
    }
    return tokens;
  }

 private:
  double end_batch(std::uint32_t model, std::vector<std::uint32_t>& moved_to) {
    double tokens = 0;
    std::discrete_distribution<std::uint32_t> next(model_.routing[model].begin(),
                                                   model_.routing[model].end());
    for (std::size_t r = 0; r < place_.size(); ++r)
      if (place_[r] == model && in_batch_[r]) {
        in_batch_[r] = false;
        moved_to[r] = next(random_);
        tokens += model_.committed_tokens[model][moved_to[r]];
      }
    return tokens;
  }

  void launch() {
    for (std::uint32_t i = 0; i < busy_.size(); ++i) {
      std::uint32_t waiting = 0;
      for (std::size_t r = 0; r < place_.size(); ++r)
        waiting += place_[r] == i && !in_batch_[r] ? 1 : 0;
      if (busy_[i] || waiting < thresholds_[i])
        continue;
      busy_[i] = true;
      ends_at_tick_[i] = now_tick_ + step_ticks(model_, i, waiting);
      for (std::size_t r = 0; r < place_.size(); ++r)
        in_batch_[r] = in_batch_[r] || place_[r] == i;
    }
  }

  const routing_model& model_;
  std::vector<std::uint32_t> thresholds_;
  std::vector<std::uint32_t> place_; ///< per request: its model
  std::vector<bool> in_batch_;       ///< per request: runs, does not wait
  std::vector<std::uint64_t> ends_at_tick_;
  std::vector<bool> busy_;
  std::uint64_t now_tick_ = 0;
  std::mt19937_64 random_;
};

struct simulated_case {
  std::string name;
  std::vector<double> latencies_ms;
  matrix_rows routing, committed_tokens;
  std::uint32_t live_requests;
  std::vector<std::uint32_t> thresholds;
  std::uint32_t entry = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(rates_agree_with_a_simulation_of_every_request) {
  const matrix_rows ones{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  const matrix_rows mixture(3, {0.5, 0.3, 0.2});
  // A chain of three: each model passes on what it is unsure of and drops its own token; the later
  // ones keep what they make and step back.
  const matrix_rows stitch{{0.7, 0.3, 0}, {0.4, 0.35, 0.25}, {0, 0.6, 0.4}};
  const matrix_rows stitch_tokens{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}};
  const std::vector<simulated_case> cases{
      {"two models, delayed", {6, 28}, {{0.65, 0.35}, {1, 0}}, {{1, 0}, {1, 0}}, 5, {1, 3}},
      {"two models, stitched", {6, 28}, {{0.8, 0.2}, {0.3, 0.7}}, {{1, 0}, {1, 1}}, 4, {2, 2}},
      {"ensemble of three", {6, 13, 28}, mixture, ones, 5, {1, 1, 1}},
      {"ensemble of three, delayed", {6, 13, 28}, mixture, ones, 5, {1, 2, 3}},
      {"ensemble of three, all delayed", {6, 13, 28}, mixture, ones, 6, {2, 2, 2}, 1},
      {"stitched three", {5, 11, 24}, stitch, stitch_tokens, 4, {1, 1, 1}},
      {"stitched three, delayed", {5, 11, 24}, stitch, stitch_tokens, 6, {1, 2, 3}},
  };
  for (const auto& one : cases) {
    routing_model model;
    model.latencies_ms = one.latencies_ms;
    model.routing = one.routing;
    model.committed_tokens = one.committed_tokens;
    model.entry = one.entry;
    model.grid_ms = 1;
    const auto exact = delayed_batching_rate(model, one.live_requests, one.thresholds);
    BOOST_REQUIRE_MESSAGE(exact, one.name << ": " << (exact ? "" : exact.error().message));

    // Means of many stretches, each long against the time in which phases are forgotten.
    constexpr std::uint64_t stretch_ticks = 10'000;
    constexpr int stretches = 100;
    simulation sim(model, one.live_requests, one.thresholds, 20'240'607);
    sim.run(stretch_ticks);
    double sum = 0, squares = 0;
    for (int i = 0; i < stretches; ++i) {
      const double rate = sim.run(stretch_ticks) * 1000.0 / stretch_ticks;
      sum += rate;
      squares += rate * rate;
    }
    const double mean = sum / stretches;
    const double standard_error = std::sqrt((squares / stretches - mean * mean) / (stretches - 1));
    BOOST_TEST(std::abs(exact->tokens_per_second - mean) < 4 * standard_error,
               one.name << ": exact " << exact->tokens_per_second << ", simulated " << mean
                        << " +- " << standard_error);
    BOOST_TEST(standard_error < 0.01 * mean, one.name);
  }
}
