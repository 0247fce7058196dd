#include "launch/memory_shares.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "gpu/devices.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

/// What the weights of all its models and the reserve leave of a host or GPU.
double room_bytes(const memory_shares& shares, std::uint32_t device) {
  const auto& host = shares.devices[device];
  double room = static_cast<double>(host.memory_bytes) * host.usable_fraction -
                static_cast<double>(host.reserved_bytes);
  for (const auto& model : shares.models)
    for (const std::uint32_t other : model.shard_devices)
      if (other == device)
        room -= static_cast<double>(model.weight_bytes) /
                static_cast<double>(model.shard_devices.size());
  return std::max(room, 0.0);
}

/// Blocks of a model that fit into that share of the room on each of its devices.
double blocks_of_share(const memory_shares& shares, const memory_model& model, double fraction) {
  double room = room_bytes(shares, model.shard_devices.front());
  for (const std::uint32_t device : model.shard_devices)
    room = std::min(room, room_bytes(shares, device));
  return fraction * room * static_cast<double>(model.shard_devices.size()) /
         static_cast<double>(model.kv_bytes_per_block);
}

bool uses_gpus(const job_config& config) {
  return std::ranges::any_of(config.models, [](const auto& m) { return m.device.gpu; });
}

/// How many GPUs the ranks of the same host before this one that see the same take: as many as a
/// replica has shards there.
std::uint32_t gpus_before(const job_config& config, const job_plan& job, rank_id rank,
                          const host_layout& layout) {
  std::map<std::uint32_t, std::uint32_t> taken; // by rank
  std::map<std::pair<replica_id, std::uint32_t>, std::uint32_t> shards;
  for (const auto& [shard, other] : shards_of(job)) {
    if (!config.models[shard.replica.model.value].device.gpu || other.value >= rank.value ||
        layout.host_of_rank[other.value] != layout.host_of_rank[rank.value] ||
        layout.gpus_seen_by(other) != layout.gpus_seen_by(rank))
      continue;
    auto& here = taken[other.value];
    here = std::max(here, ++shards[{shard.replica, other.value}]);
  }
  std::uint32_t sum = 0;
  for (const auto& [other, gpus] : taken)
    sum += gpus;
  return sum;
}

/// Shards of the same replica before this one that share its rank.
std::uint32_t shards_before(const job_plan& job, const placed_shard& placed) {
  std::uint32_t count = 0;
  for (const auto& [shard, rank] : shards_of(job))
    if (shard.replica == placed.shard.replica && shard.index < placed.shard.index &&
        rank == placed.rank)
      ++count;
  return count;
}

/// Finds two shards of one replica on one GPU.
result<void> refuse_shared_gpus(const memory_shares& shares) {
  for (const auto& model : shares.models)
    for (std::size_t i = 0; i < model.shard_devices.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (model.shard_devices[i] == model.shard_devices[k])
          return fail(errc::invalid_argument,
                      "shards " + std::to_string(k) + " and " + std::to_string(i) + " of model '" +
                          model.name + "' would both run on " +
                          shares.devices[model.shard_devices[i]].name +
                          ": each needs a GPU of its own; give tp_size at most as many as the "
                          "hosts of its `ranks` have");
  return {};
}

} // namespace

result<std::vector<visible_gpu>> gpus_here(const job_config& config) {
  std::vector<visible_gpu> seen;
  if (!uses_gpus(config))
    return seen;
  const auto gpus = list_gpus();
  if (!gpus)
    return tl::unexpected(gpus.error());
  for (const auto& gpu : *gpus)
    seen.push_back({gpu.id, gpu.free_bytes});
  return seen;
}

result<job_host> host_here(const job_config& config) {
  const auto gpus = gpus_here(config);
  if (!gpus)
    return tl::unexpected(gpus.error());
  job_host host{"", available_memory_bytes(), {}};
  for (const visible_gpu& gpu : *gpus)
    host.gpu_bytes.push_back(gpu.free_bytes);
  return host;
}

result<std::optional<gpu_choice>> gpu_of(const job_config& config, const job_plan& job,
                                         const placed_shard& placed, const host_layout& layout) {
  const model_id model = placed.shard.replica.model;
  const device_choice& device = config.models[model.value].device;
  if (!device.gpu)
    return std::optional<gpu_choice>();
  const auto seen = layout.gpus_seen_by(placed.rank);
  const auto count = static_cast<std::uint32_t>(seen.size());
  const std::uint32_t shard = shards_before(job, placed);
  const std::uint32_t free_choice =
      count > 0 ? (gpus_before(config, job, placed.rank, layout) + shard) % count : 0;
  const std::uint32_t number = device.number ? *device.number + shard : free_choice;
  if (number >= count)
    return fail(errc::not_found, "model '" + job.models[model.value].name +
                                     "' wants cuda:" + std::to_string(number) + " on rank " +
                                     std::to_string(placed.rank.value) + ", which sees " +
                                     std::to_string(count) + " GPUs of host " +
                                     layout.hosts[layout.host_of_rank[placed.rank.value]].name);
  return std::optional(gpu_choice{number, seen[number]});
}

result<memory_shares> share_memory(const job_config& config, const job_plan& job,
                                   const host_layout& layout) {
  memory_shares shares;
  shares.replicas = replicas_of(job);
  for (const auto& host : layout.hosts)
    shares.devices.push_back(
        {host.name, host.memory_bytes, layout.usable_fraction, layout.reserved_bytes});
  std::vector<std::uint32_t> first_gpu;
  for (const auto& host : layout.hosts) {
    first_gpu.push_back(static_cast<std::uint32_t>(shares.devices.size()));
    for (std::size_t i = 0; i < host.gpu_bytes.size(); ++i)
      shares.devices.push_back({host.name + " cuda:" + std::to_string(i), host.gpu_bytes[i],
                                layout.usable_fraction, layout.reserved_bytes});
  }
  for (const auto& [replica, leader] : shares.replicas) {
    const auto& planned = job.models[replica.model.value];
    const auto& settings = config.models[replica.model.value];
    memory_model model;
    model.name = planned.name;
    if (planned.replicas() > 1)
      model.name += "/" + std::to_string(replica.index);
    model.weight_bytes = planned.weight_bytes;
    model.kv_bytes_per_block = planned.kv_bytes_per_block;
    for (const placed_shard& one : shards_of(job)) {
      if (one.shard.replica != replica)
        continue;
      const auto gpu = gpu_of(config, job, one, layout);
      if (!gpu)
        return tl::unexpected(gpu.error());
      const std::uint32_t host = layout.host_of_rank[one.rank.value];
      const auto number = *gpu ? std::optional((*gpu)->number) : std::nullopt;
      shares.shards.push_back({one.shard, one.rank, shares.models.size(), number});
      model.shard_devices.push_back(*gpu ? first_gpu[host] + (*gpu)->of_host : host);
    }
    model.tokens_weight = 1.0 / static_cast<double>(planned.replicas());
    model.fixed_tokens = settings.kv_cache_tokens;
    model.max_tokens = std::uint64_t{planned.context_tokens_max} * settings.max_batch_rows;
    shares.models.push_back(std::move(model));
  }
  if (auto ok = refuse_shared_gpus(shares); !ok)
    return tl::unexpected(ok.error());
  for (std::size_t i = 0; i < shares.models.size(); ++i) {
    auto& model = shares.models[i];
    const double fraction =
        config.models[shares.replicas[i].replica.model.value].kv_cache_mem_fraction;
    if (fraction <= 0 || model.fixed_tokens > 0)
      continue;
    const double blocks = blocks_of_share(shares, model, fraction);
    const auto tokens =
        std::max<std::uint64_t>(static_cast<std::uint64_t>(blocks), 1) * limits::block_tokens;
    model.fixed_tokens = std::min(tokens, model.max_tokens);
  }
  auto plan = solve_memory(shares.devices, shares.models);
  if (!plan)
    return tl::unexpected(plan.error());
  shares.plan = std::move(*plan);
  for (std::size_t i = 0; i < shares.models.size(); ++i) {
    const auto& planned = job.models[shares.replicas[i].replica.model.value];
    const bool asked_for =
        config.models[shares.replicas[i].replica.model.value].kv_cache_tokens > 0;
    if (!asked_for && shares.plan.models[i].kv_tokens < planned.context_tokens_max)
      return fail(errc::capacity,
                  "the KV cache of model '" + shares.models[i].name + "' would hold " +
                      std::to_string(shares.plan.models[i].kv_tokens) +
                      " tokens, less than one context of " +
                      std::to_string(planned.context_tokens_max) +
                      ": put models on more hosts with `ranks`, or set kv_cache.tokens");
  }
  return shares;
}

} // namespace tokenrouter
