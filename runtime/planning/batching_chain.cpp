#include "runtime/planning/batching_chain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

using counts = std::array<std::uint8_t, chain_models_max>;

struct chain_state {
  counts waiting{};
  counts running{};
  std::array<std::uint32_t, chain_models_max> left_ticks{}; ///< 0: the model is idle

  friend bool operator==(const chain_state&, const chain_state&) = default;
};

static_assert(sizeof(chain_state) == 48, "hashed as bytes, so no padding");
static_assert(chain_live_max <= UINT8_MAX);

struct state_hash {
  std::size_t operator()(const chain_state& state) const {
    std::array<std::uint64_t, sizeof(chain_state) / 8> words;
    std::memcpy(words.data(), &state, sizeof state);
    std::uint64_t hash = 0;
    for (std::uint64_t word : words) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

/// Where the requests of ended batches go, and how likely that is.
struct arrival {
  counts to{};
  double chance = 1;
};

/// Pairs of outcomes that one state may have; a chain with more is far over any limit of states.
constexpr std::size_t pairs_max = 10'000'000;

class chain_builder {
 public:
  chain_builder(const routing_model& model, std::uint32_t live_requests,
                std::span<const std::uint32_t> thresholds)
      : model_(model), models_(model.models()), live_(live_requests), thresholds_(thresholds),
        outcomes_(models_ * (live_ + 1)) {
    for (std::uint32_t n = 0; n <= live_; ++n) {
      binomials_.emplace_back(n + 1, 1);
      for (std::uint32_t k = 1; k < n; ++k)
        binomials_[n][k] = binomials_[n - 1][k - 1] + binomials_[n - 1][k];
    }
  }

  /// False if there are more states than that.
  bool build(std::uint32_t states_max) {
    chain_state start;
    start.waiting[model_.entry] = static_cast<std::uint8_t>(live_);
    index_of(start);
    out_.first_edge.push_back(0);
    outcomes_max_ = states_max;
    for (std::size_t s = 0; s < states_.size() && !too_many_; ++s) {
      expand(states_[s]);
      too_many_ = too_many_ || states_.size() > states_max;
    }
    return !too_many_;
  }

  batching_chain take() { return std::move(out_); }

 private:
  /// Launches what may start, then finds or adds the state.
  std::uint32_t index_of(chain_state state) {
    bool busy = false;
    for (std::uint32_t i = 0; i < models_; ++i) {
      if (state.running[i] == 0 && state.waiting[i] >= thresholds_[i]) {
        state.running[i] = std::exchange(state.waiting[i], std::uint8_t{0});
        state.left_ticks[i] = step_ticks(model_, i, state.running[i]);
      }
      busy = busy || state.running[i] > 0;
    }
    check(busy, "thresholds below the live requests leave some model with a full batch");
    const auto [at, added] = index_.try_emplace(state, static_cast<std::uint32_t>(states_.size()));
    if (added)
      states_.push_back(state);
    return at->second;
  }

  /// Appends the edges of a state. By value: `states_` grows meanwhile.
  void expand(chain_state state) {
    std::uint32_t hold_ticks = UINT32_MAX;
    for (std::uint32_t i = 0; i < models_; ++i)
      if (state.running[i] > 0)
        hold_ticks = std::min(hold_ticks, state.left_ticks[i]);
    double tokens = 0;
    arrivals_.assign(1, {});
    for (std::uint32_t i = 0; i < models_; ++i) {
      if (state.running[i] == 0)
        continue;
      state.left_ticks[i] -= hold_ticks;
      if (state.left_ticks[i] > 0)
        continue;
      for (std::uint32_t j = 0; j < models_; ++j)
        tokens += state.running[i] * model_.committed_tokens[i][j] * model_.routing[i][j];
      add_outcomes(outcomes(i, state.running[i]));
      state.running[i] = 0;
    }
    if (too_many_)
      return;
    for (const auto& arrived : arrivals_) {
      chain_state next = state;
      for (std::uint32_t i = 0; i < models_; ++i)
        next.waiting[i] = static_cast<std::uint8_t>(next.waiting[i] + arrived.to[i]);
      out_.edge_state.push_back(index_of(next));
      out_.edge_chance.push_back(arrived.chance);
    }
    out_.first_edge.push_back(out_.edge_state.size());
    out_.hold_ticks.push_back(hold_ticks);
    out_.commit_tokens.push_back(tokens);
  }

  /// One more ended batch: every arrival so far with every outcome of it, equal sums merged.
  void add_outcomes(const std::vector<arrival>& more) {
    if (arrivals_.size() == 1 && arrivals_.front().to == counts{}) {
      arrivals_ = more;
      return;
    }
    sums_.clear();
    too_many_ = too_many_ || arrivals_.size() * more.size() > pairs_max;
    if (too_many_)
      return;
    for (const auto& a : arrivals_)
      for (const auto& b : more) {
        arrival sum{a.to, a.chance * b.chance};
        for (std::uint32_t i = 0; i < models_; ++i)
          sum.to[i] = static_cast<std::uint8_t>(sum.to[i] + b.to[i]);
        sums_.push_back(sum);
      }
    std::sort(sums_.begin(), sums_.end(),
              [](const arrival& a, const arrival& b) { return a.to < b.to; });
    arrivals_.clear();
    for (const auto& sum : sums_)
      if (!arrivals_.empty() && arrivals_.back().to == sum.to)
        arrivals_.back().chance += sum.chance;
      else
        arrivals_.push_back(sum);
  }

  /// Multinomial outcomes of a batch of that model, made at first use.
  const std::vector<arrival>& outcomes(std::uint32_t model, std::uint32_t requests) {
    auto& list = outcomes_[model * (live_ + 1) + requests];
    if (list.empty())
      split(list, model, 0, requests, {});
    return list;
  }

  void split(std::vector<arrival>& list, std::uint32_t from, std::uint32_t to,
             std::uint32_t requests, const arrival& so_far) {
    if (to == models_) {
      if (requests == 0)
        list.push_back(so_far);
      // Each outcome leads to a state of its own.
      too_many_ = too_many_ || list.size() > outcomes_max_;
      return;
    }
    const double chance = model_.routing[from][to];
    for (std::uint32_t n = 0; n <= (chance > 0 ? requests : 0) && !too_many_; ++n) {
      arrival next = so_far;
      next.to[to] = static_cast<std::uint8_t>(n);
      next.chance *= static_cast<double>(binomials_[requests][n]) * std::pow(chance, n);
      if (next.chance > 0)
        split(list, from, to + 1, requests - n, next);
    }
  }

  const routing_model& model_;
  std::uint32_t models_;
  std::uint32_t live_;
  std::span<const std::uint32_t> thresholds_;
  std::vector<std::vector<std::uint64_t>> binomials_; ///< [n][k]; exact, 64 choose 32 fits
  std::vector<std::vector<arrival>> outcomes_;        ///< [model * (live + 1) + requests]
  std::vector<arrival> arrivals_, sums_;              ///< of the state under way
  std::size_t outcomes_max_ = 0;
  bool too_many_ = false;
  std::vector<chain_state> states_;
  std::unordered_map<chain_state, std::uint32_t, state_hash> index_;
  batching_chain out_;
};

} // namespace

result<batching_chain> enumerate_chain(const routing_model& model, std::uint32_t live_requests,
                                       std::span<const std::uint32_t> thresholds,
                                       std::uint32_t states_max) {
  check(thresholds.size() == model.latencies_ms.size(), "one threshold a model");
  if (live_requests < 1 || live_requests > chain_live_max)
    return fail(errc::invalid_argument, std::to_string(live_requests) +
                                            " live requests; the batching model takes 1 to " +
                                            std::to_string(chain_live_max));
  std::uint64_t held_back = 0;
  for (std::uint32_t threshold : thresholds) {
    if (threshold < 1)
      return fail(errc::invalid_argument, "a threshold of 0; a batch has at least 1 request");
    held_back += threshold - 1;
  }
  if (held_back >= live_requests)
    return fail(errc::invalid_argument,
                "with these thresholds " + std::to_string(held_back) +
                    " requests can wait without any batch starting, and only " +
                    std::to_string(live_requests) + " live; lower a threshold");
  chain_builder builder(model, live_requests, thresholds);
  if (!builder.build(states_max))
    return fail(errc::capacity, "the batching model of " + std::to_string(live_requests) +
                                    " live requests has over " + std::to_string(states_max) +
                                    " states; use a coarser time grid or fewer requests");
  return builder.take();
}

} // namespace tokenrouter
