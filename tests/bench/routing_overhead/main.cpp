#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tests/actors/rank_bench.hpp"
#include "tests/support/wrapped_backend.hpp"

/// What a step costs beside the model: the product's actors of one rank (gateway, request,
/// scheduler, kv_pool, switchboard) over scripted models whose own time is taken off. For each
/// method and batch size, in microseconds of the control thread:
///   gap   from a step's results to the next step's start: results, routing, commits, handoffs,
///         planning, leases. While it lasts the model waits.
///   all   the same and what follows while the model runs: tokens to requests and clients.
namespace {

using namespace tokenrouter;
using clock_type = std::chrono::steady_clock;

struct model_time {
  std::chrono::nanoseconds spent{0};
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::chrono::nanoseconds gaps{0};
  clock_type::time_point results_back; ///< when the step before was over
};

/// Takes the time inside a model.
class timed_backend final : public test::wrapped_backend {
 public:
  timed_backend(std::unique_ptr<backend> model, model_time& time)
      : wrapped_backend(std::move(model)), time_(time) {}

  void step(const step_input& in, step_output& out) override {
    const auto began = clock_type::now();
    time_.gaps += began - time_.results_back;
    inner().step(in, out);
    time_.results_back = clock_type::now(); // of another model's step in the same turn of the loop
    time_.spent += clock_type::now() - began;
    ++time_.steps;
    time_.rows += in.rows.size();
  }

 private:
  model_time& time_;
};

struct overhead {
  double gap_us = 0;
  double step_us = 0;
  double row_us = 0;
  double mean_rows = 0;
};

overhead measure(const std::vector<std::string>& roles, double threshold, std::uint32_t requests) {
  constexpr std::uint32_t prompt_tokens = 16, new_tokens = 200;
  model_time time;
  test::rank_options options;
  options.roles = roles;
  options.threshold = threshold;
  options.pool_blocks = requests * (prompt_tokens + new_tokens + 16) / 16;
  options.rows_max = 256;
  options.eos_odds = 0;
  options.wrap = [&](std::unique_ptr<backend> inner) -> std::unique_ptr<backend> {
    return std::make_unique<timed_backend>(std::move(inner), time);
  };
  test::rank_bench bench(std::move(options));
  for (std::uint32_t i = 0; i < requests; ++i) {
    std::vector<token_id> prompt;
    for (std::uint32_t k = 0; k < prompt_tokens; ++k)
      prompt.push_back(static_cast<token_id>(1 + (i * 7 + k * 3) % 60));
    bench.submit(i, std::move(prompt), new_tokens);
  }
  const auto began = clock_type::now();
  time.results_back = clock_type::now();
  bench.loop().run_ready();
  while (bench.log().done.size() < requests) {
    const std::uint64_t next_us = bench.loop().next_timer_us().value();
    time.results_back = clock_type::now();
    bench.run_until(next_us);
  }
  const std::chrono::duration<double, std::micro> spent = clock_type::now() - began - time.spent;
  const std::chrono::duration<double, std::micro> gaps = time.gaps;
  return {gaps.count() / static_cast<double>(time.steps),
          spent.count() / static_cast<double>(time.steps),
          spent.count() / static_cast<double>(time.rows),
          static_cast<double>(time.rows) / static_cast<double>(time.steps)};
}

void print_line(const char* name, const std::vector<std::string>& roles, double threshold) {
  std::printf("%-8s", name);
  for (const std::uint32_t requests : {1u, 16u, 64u, 256u}) {
    std::vector<overhead> runs;
    for (int i = 0; i < 5; ++i)
      runs.push_back(measure(roles, threshold, requests));
    std::sort(runs.begin(), runs.end(),
              [](const overhead& a, const overhead& b) { return a.gap_us < b.gap_us; });
    const overhead& median = runs[runs.size() / 2];
    std::printf("%8.1f %7.1f %7.2f %6.1f", median.gap_us, median.step_us, median.row_us,
                median.mean_rows);
  }
  std::printf("\n");
}

} // namespace

int main() {
  std::printf("medians of 5 runs; for 1, 16, 64 and 256 requests under way:\n"
              "gap us/step, all us/step, all us/row, mean rows of a step\n");
  print_line("plain", {"plain"}, 0);
  print_line("r2r 35%", {"r2r_slm", "r2r_llm"}, 0.65);
}
