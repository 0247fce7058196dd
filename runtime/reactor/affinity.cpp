#include "runtime/reactor/affinity.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <pthread.h>
#include <sched.h>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

/// A core of its own for every thread of every rank, or nothing.
std::optional<std::vector<thread_layout>> plan_exclusive(std::span<const rank_threads> host) {
  // Ranks with the fewest cores choose first: what they may use, others may do without.
  std::vector<std::size_t> order(host.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return host[a].allowed_cores.size() < host[b].allowed_cores.size();
  });
  std::set<int> taken;
  std::vector<thread_layout> plan(host.size());
  for (const auto rank : order) {
    std::vector<int> own;
    for (const int core : host[rank].allowed_cores)
      if (own.size() < std::size_t{host[rank].model_threads} + 1 && taken.insert(core).second)
        own.push_back(core);
    if (own.size() < std::size_t{host[rank].model_threads} + 1)
      return std::nullopt;
    plan[rank].control_core = own.front();
    plan[rank].model_cores.assign(own.begin() + 1, own.end());
    plan[rank].may_spin = true;
  }
  return plan;
}

/// Takes the least loaded core of `allowed`, the first among equals, other than `avoid` if
/// possible.
int take_least_loaded(std::map<int, unsigned>& load, const std::vector<int>& allowed,
                      const std::vector<int>& avoid) {
  const auto key = [&](int core) {
    const bool avoided = std::find(avoid.begin(), avoid.end(), core) != avoid.end();
    return std::pair(avoided, load[core]);
  };
  const int best = *std::min_element(allowed.begin(), allowed.end(),
                                     [&](int a, int b) { return key(a) < key(b); });
  ++load[best];
  return best;
}

std::vector<thread_layout> plan_shared(std::span<const rank_threads> host) {
  std::map<int, unsigned> load;
  std::vector<thread_layout> plan(host.size());
  for (std::size_t rank = 0; rank < host.size(); ++rank)
    for (unsigned i = 0; i < host[rank].model_threads && !host[rank].allowed_cores.empty(); ++i)
      plan[rank].model_cores.push_back(take_least_loaded(load, host[rank].allowed_cores, {}));
  for (std::size_t rank = 0; rank < host.size(); ++rank)
    if (host[rank].allowed_cores.empty())
      plan[rank].model_cores.assign(host[rank].model_threads, -1);
    else
      plan[rank].control_core =
          take_least_loaded(load, host[rank].allowed_cores, plan[rank].model_cores);
  return plan;
}

} // namespace

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set))
      cores.push_back(core);
  return cores;
}

result<void> pin_this_thread(int core) {
  return pin_this_thread({&core, 1});
}

result<void> pin_this_thread(std::span<const int> cores) {
  check(!cores.empty(), "a thread runs somewhere");
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string names;
  for (const int core : cores) {
    if (core < 0 || core >= CPU_SETSIZE)
      return fail(errc::invalid_argument, "there is no core " + std::to_string(core));
    CPU_SET(core, &set);
    names += (names.empty() ? "" : ", ") + std::to_string(core);
  }
  if (const int code = pthread_setaffinity_np(pthread_self(), sizeof set, &set); code != 0)
    return fail(errc::invalid_argument, "can't run a thread on core " + names + ": " +
                                            std::strerror(code) +
                                            "; start the job with more cores");
  return {};
}

thread_layout plan_threads(std::span<const rank_threads> host, std::size_t local_rank) {
  check(local_rank < host.size(), "local rank out of range");
  if (const auto plan = plan_exclusive(host))
    return (*plan)[local_rank];
  return plan_shared(host)[local_rank];
}

thread_layout plan_threads(std::span<const int> allowed_cores, unsigned ranks_on_host,
                           unsigned local_rank, unsigned model_threads) {
  const std::vector<rank_threads> host(
      ranks_on_host,
      rank_threads{std::vector<int>(allowed_cores.begin(), allowed_cores.end()), model_threads});
  return plan_threads(host, local_rank);
}

} // namespace tokenrouter
