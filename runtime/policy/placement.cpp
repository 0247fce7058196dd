#include "runtime/policy/placement.hpp"

#include <algorithm>
#include <numeric>

#include "runtime/core/check.hpp"

namespace tokenrouter {

std::vector<rank_id> place_replicas(std::span<const placement_wish> wishes, std::size_t entry,
                                    std::uint32_t rank_count) {
  check(rank_count >= 1, "a job has at least one rank");
  check(entry < wishes.size(), "the entry replica is one of the replicas");
  struct load {
    std::uint64_t bytes = 0;
    std::uint32_t models = 0;
  };
  std::vector<load> loads(rank_count);
  std::vector<rank_id> placed(wishes.size());
  std::vector<std::size_t> open;
  const auto put = [&](std::size_t model, std::uint32_t rank) {
    placed[model] = {rank};
    loads[rank].bytes += wishes[model].weight_bytes;
    ++loads[rank].models;
  };
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    if (wishes[i].rank) {
      check(wishes[i].rank->value < rank_count, "a fixed rank is one of the job's");
      put(i, wishes[i].rank->value);
    } else if (i == entry) {
      put(i, 0);
    } else {
      open.push_back(i);
    }
  }
  std::stable_sort(open.begin(), open.end(), [&](std::size_t a, std::size_t b) {
    return wishes[a].weight_bytes > wishes[b].weight_bytes;
  });
  for (std::size_t model : open) {
    std::uint32_t best = 0;
    for (std::uint32_t r = 1; r < rank_count; ++r)
      if (std::pair(loads[r].bytes, loads[r].models) <
          std::pair(loads[best].bytes, loads[best].models))
        best = r;
    put(model, best);
  }
  return placed;
}

} // namespace tokenrouter
