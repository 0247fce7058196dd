#include "runtime/planning/markov.hpp"

#include <string>

#include "runtime/core/check.hpp"
#include "runtime/planning/batching_chain.hpp"
#include "runtime/planning/stationary.hpp"

namespace tokenrouter {

namespace {

constexpr double equal_rates = 1e-9;

result<batching_rate> rate_of(const routing_model& model, std::uint32_t live_requests,
                              std::span<const std::uint32_t> thresholds, std::uint32_t states_max) {
  const auto chain = enumerate_chain(model, live_requests, thresholds, states_max);
  if (!chain)
    return tl::unexpected(chain.error());
  const auto rate = long_run_tokens_per_tick(*chain);
  if (!rate)
    return tl::unexpected(rate.error());
  return batching_rate{*rate * 1000 / model.grid_ms, chain->states()};
}

/// The vector after this one with sum(B_i - 1) < live_requests; false: it was the last.
bool advance(std::vector<std::uint32_t>& thresholds, std::uint32_t live_requests) {
  std::uint32_t held_back = 0;
  for (std::uint32_t threshold : thresholds)
    held_back += threshold - 1;
  for (std::size_t i = thresholds.size(); i-- > 0;) {
    if (held_back + 1 < live_requests) {
      ++thresholds[i];
      return true;
    }
    held_back -= thresholds[i] - 1;
    thresholds[i] = 1;
  }
  return false;
}

std::uint64_t sum_of(const std::vector<std::uint32_t>& thresholds) {
  std::uint64_t sum = 0;
  for (std::uint32_t threshold : thresholds)
    sum += threshold;
  return sum;
}

} // namespace

result<batching_rate> delayed_batching_rate(const routing_model& model, std::uint32_t live_requests,
                                            std::span<const std::uint32_t> thresholds,
                                            const chain_limits& limits) {
  if (auto ok = check_routing_model(model); !ok)
    return tl::unexpected(ok.error());
  return rate_of(model, live_requests, thresholds, limits.states_max);
}

result<batching_table> optimise_batching(const routing_model& model, std::uint32_t live_requests,
                                         const chain_limits& limits) {
  if (auto ok = check_routing_model(model); !ok)
    return tl::unexpected(ok.error());
  batching_table table;
  std::vector<std::uint32_t> thresholds(model.models(), 1);
  std::uint64_t states_count = 0;
  do {
    if (limits.stop != nullptr && limits.stop->load(std::memory_order_relaxed))
      return fail(errc::cancelled, "the table was not wanted any more");
    const auto rate = rate_of(model, live_requests, thresholds, limits.states_max);
    if (!rate)
      return tl::unexpected(rate.error());
    states_count += rate->states_count;
    if (states_count > limits.table_states_max)
      return fail(errc::capacity, "the batching models of all thresholds for " +
                                      std::to_string(live_requests) + " live requests have over " +
                                      std::to_string(limits.table_states_max) +
                                      " states; use a coarser time grid or fewer requests");
    table.choices.push_back({thresholds, *rate});
  } while (advance(thresholds, live_requests));

  for (std::size_t i = 1; i < table.choices.size(); ++i) {
    const auto& best = table.choices[table.best_index];
    const auto& one = table.choices[i];
    const double margin = equal_rates * best.rate.tokens_per_second;
    const double gain = one.rate.tokens_per_second - best.rate.tokens_per_second;
    if (gain > margin || (gain >= -margin && sum_of(one.thresholds) < sum_of(best.thresholds)))
      table.best_index = i;
  }
  return table;
}

} // namespace tokenrouter
