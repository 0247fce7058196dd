#include "runtime/planning/threshold_lists.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

/// Losses are compared in steps of this, so that rounding does not outweigh less delay.
constexpr double equal_losses = 1e-9;

struct sequence_cost {
  double loss = 0;          ///< sum of shares below the best
  std::uint64_t delays = 0; ///< sum of B - 1 over models and n

  bool operator<(const sequence_cost& other) const {
    if (std::abs(loss - other.loss) > equal_losses)
      return loss < other.loss;
    return delays < other.delays;
  }
};

double best_of(const batching_table& table) {
  return table.choices[table.best_index].rate.tokens_per_second;
}

double loss_share(double tokens_per_second, double best_tokens_per_second) {
  return best_tokens_per_second > 0 ? 1 - tokens_per_second / best_tokens_per_second : 0;
}

bool never_falls(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to) {
  return std::equal(from.begin(), from.end(), to.begin(), std::less_equal<>());
}

/// For each table the index of the chosen vector.
std::vector<std::size_t> cheapest_sequence(const std::vector<batching_table>& tables) {
  std::vector<sequence_cost> costs;
  std::vector<std::vector<std::size_t>> previous(tables.size());
  for (std::size_t n = 0; n < tables.size(); ++n) {
    const auto& choices = tables[n].choices;
    std::vector<sequence_cost> next(choices.size());
    previous[n].assign(choices.size(), 0);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (n > 0) {
        // The first vector is all ones, below every other: some predecessor always exists.
        std::size_t least = 0;
        for (std::size_t j = 1; j < costs.size(); ++j)
          if (costs[j] < costs[least] &&
              never_falls(tables[n - 1].choices[j].thresholds, choices[i].thresholds))
            least = j;
        next[i] = costs[least];
        previous[n][i] = least;
      }
      next[i].loss += loss_share(choices[i].rate.tokens_per_second, best_of(tables[n]));
      for (std::uint32_t threshold : choices[i].thresholds)
        next[i].delays += threshold - 1;
    }
    costs = std::move(next);
  }
  std::vector<std::size_t> chosen(tables.size());
  chosen.back() =
      static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  for (std::size_t n = tables.size() - 1; n > 0; --n)
    chosen[n - 1] = previous[n][chosen[n]];
  return chosen;
}

} // namespace

double threshold_lists::worst_loss_share() const {
  double worst = 0;
  for (std::size_t n = 0; n < rates.size(); ++n)
    worst = std::max(worst, loss_share(rates[n].tokens_per_second, best_tokens_per_second[n]));
  return worst;
}

threshold_lists choose_threshold_lists(const std::vector<batching_table>& tables) {
  check(!tables.empty(), "threshold lists are for at least one live request");
  const auto chosen = cheapest_sequence(tables);
  threshold_lists lists;
  lists.of_model.resize(tables.front().choices.front().thresholds.size());
  for (std::size_t n = 0; n < tables.size(); ++n) {
    const auto& choice = tables[n].choices[chosen[n]];
    for (std::size_t i = 0; i < choice.thresholds.size(); ++i)
      lists.of_model[i].push_back(choice.thresholds[i]);
    lists.rates.push_back(choice.rate);
    lists.no_delay_tokens_per_second.push_back(tables[n].choices.front().rate.tokens_per_second);
    lists.best_tokens_per_second.push_back(best_of(tables[n]));
  }
  return lists;
}

result<threshold_lists> plan_threshold_lists(const routing_model& model,
                                             std::uint32_t live_requests_max,
                                             const chain_limits& limits) {
  if (live_requests_max < 1)
    return fail(errc::invalid_argument, "threshold lists are for at least 1 live request");
  std::vector<batching_table> tables;
  for (std::uint32_t n = 1; n <= live_requests_max; ++n) {
    auto table = optimise_batching(model, n, limits);
    if (!table)
      return tl::unexpected(table.error());
    tables.push_back(std::move(*table));
  }
  return choose_threshold_lists(tables);
}

} // namespace tokenrouter
