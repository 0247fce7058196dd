#include "launch/start_table.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace tokenrouter {

namespace {

constexpr std::size_t pairs_shown_max = 10;

/// "0-3,8" of ascending numbers.
std::string ranges_text(const std::vector<std::int32_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ",", numbers[i]);
    if (last > i)
      out += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return out;
}

std::string cores_text(const rank_card& card) {
  std::string out = ranges_text(card.allowed_cores);
  if (card.physical_cores > 0 && card.physical_cores < card.allowed_cores.size())
    out += fmt::format(" ({} cores)", card.physical_cores);
  return out;
}

struct pair_route {
  std::size_t low = 0, high = 0;
  std::string carrier;
  float one_way_us = -1;
};

/// Of every two ranks, as the lower one sees it.
std::vector<pair_route> pairs_of(const std::vector<rank_card>& cards) {
  std::vector<pair_route> out;
  for (std::size_t low = 0; low < cards.size(); ++low)
    for (std::size_t high = low + 1; high < cards[low].routes.size(); ++high)
      out.push_back(
          {low, high, cards[low].routes[high].carrier, cards[low].routes[high].one_way_us});
  return out;
}

std::string latency_text(float us) {
  return us < 0 ? "not measured" : fmt::format("{:.1f} us one way", us);
}

std::string routes_text(const std::vector<pair_route>& pairs) {
  std::string out;
  if (pairs.size() <= pairs_shown_max) {
    for (const auto& pair : pairs)
      out += fmt::format("ranks {} and {}: {}, {}\n", pair.low, pair.high, pair.carrier,
                         latency_text(pair.one_way_us));
    return out;
  }
  std::map<std::string, std::vector<float>> by_carrier;
  for (const auto& pair : pairs)
    by_carrier[pair.carrier].push_back(pair.one_way_us);
  for (auto& [carrier, latencies] : by_carrier) {
    const auto [least, most] = std::ranges::minmax(latencies);
    out += fmt::format("{} pairs of ranks: {}, {} to {}\n", latencies.size(), carrier,
                       latency_text(least), latency_text(most));
  }
  return out;
}

/// Threads that a rank keeps busy: its models' and the control thread.
std::size_t threads_of(const rank_card& card) {
  return std::size_t{card.model_threads} + 1;
}

} // namespace

std::string start_table(const std::vector<rank_card>& cards, const job_plan& plan,
                        const memory_shares& shares) {
  std::string out = fmt::format("{:<5} {:<16} {:<16} {:<8} {:<20} {:>10} {:>9}\n", "rank", "host",
                                "cores", "device", "model", "KV tokens", "requests");
  for (std::size_t r = 0; r < cards.size(); ++r) {
    bool has_model = false;
    const auto line = [&](const std::string& device, const std::string& model,
                          const std::string& tokens, const std::string& requests) {
      out += fmt::format("{:<5} {:<16} {:<16} {:<8} {:<20} {:>10} {:>9}\n", r, cards[r].host,
                         cores_text(cards[r]), device, model, tokens, requests);
    };
    for (const auto& place : shares.shards) {
      if (place.rank.value != r)
        continue;
      has_model = true;
      const auto& model = plan.models[place.shard.replica.model.value];
      const auto tokens = shares.plan.models[place.replica].kv_tokens;
      line(place.device(), shares.name_of(place), std::to_string(tokens),
           std::to_string(tokens / model.context_tokens_max));
    }
    if (!has_model)
      line("-", "(no model)", "-", "-");
  }
  return out + routes_text(pairs_of(cards));
}

std::vector<std::string> start_warnings(const std::vector<rank_card>& cards) {
  struct host_load {
    std::size_t threads = 0;
    std::set<std::int32_t> cores;
  };
  std::map<std::string, host_load> hosts;
  std::vector<std::string> out;
  for (std::size_t r = 0; r < cards.size(); ++r) {
    const auto& card = cards[r];
    hosts[card.host].threads += threads_of(card);
    hosts[card.host].cores.insert(card.allowed_cores.begin(), card.allowed_cores.end());
    const bool host_has_more = card.host_threads > 1;
    if (card.allowed_cores.size() == 1 && threads_of(card) > 1 && host_has_more)
      out.push_back(fmt::format("rank {} is bound to one core ({}) and has {} threads: start with "
                                "mpirun --bind-to none, or srun --cpus-per-task",
                                r, card.allowed_cores.front(), threads_of(card)));
  }
  for (const auto& [name, host] : hosts)
    if (host.threads > host.cores.size())
      out.push_back(fmt::format("host {} is oversubscribed: {} threads on {} cores, so nothing "
                                "spins and handoffs take longer: use fewer ranks or fewer threads",
                                name, host.threads, host.cores.size()));
  for (const auto& pair : pairs_of(cards))
    if (cards[pair.low].host == cards[pair.high].host &&
        pair.carrier.find("tcp") != std::string::npos)
      out.push_back(fmt::format("ranks {} and {} share host {} but talk over {}: see that UCX_TLS "
                                "allows shared memory and that /dev/shm is shared",
                                pair.low, pair.high, cards[pair.low].host, pair.carrier));
  return out;
}

} // namespace tokenrouter
