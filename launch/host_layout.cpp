#include "launch/host_layout.hpp"

#include <algorithm>
#include <numeric>

namespace tokenrouter {

std::vector<std::uint32_t> host_layout::gpus_seen_by(rank_id rank) const {
  if (!gpus_of_rank.empty())
    return gpus_of_rank[rank.value];
  std::vector<std::uint32_t> all(hosts[host_of_rank[rank.value]].gpu_bytes.size());
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

void add_rank(host_layout& layout, const std::string& name, std::uint64_t memory_bytes,
              const std::vector<visible_gpu>& gpus) {
  auto host = std::ranges::find(layout.hosts, name, &job_host::name);
  if (host == layout.hosts.end())
    host = layout.hosts.insert(host, {name, memory_bytes, {}});
  host->memory_bytes = std::min(host->memory_bytes, memory_bytes);
  layout.host_of_rank.push_back(static_cast<std::uint32_t>(host - layout.hosts.begin()));
  auto& seen = layout.gpus_of_rank.emplace_back();
  for (const visible_gpu& gpu : gpus) {
    const auto known = std::ranges::find(host->gpu_ids, gpu.id);
    seen.push_back(static_cast<std::uint32_t>(known - host->gpu_ids.begin()));
    if (known != host->gpu_ids.end())
      continue;
    host->gpu_ids.push_back(gpu.id);
    host->gpu_bytes.push_back(gpu.free_bytes);
  }
}

host_layout equal_hosts(std::uint32_t ranks, std::uint32_t ranks_per_host, const job_host& host) {
  const std::uint32_t per_host = ranks_per_host > 0 ? ranks_per_host : ranks;
  host_layout layout;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank % per_host == 0) {
      layout.hosts.push_back(host);
      layout.hosts.back().name = "host " + std::to_string(rank / per_host);
    }
    layout.host_of_rank.push_back(rank / per_host);
  }
  return layout;
}

} // namespace tokenrouter
