#include "launch/memory_shares.hpp"

#include <algorithm>
#include <set>
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
    if (model.shard_devices.front() == device)
      room -= static_cast<double>(model.weight_bytes);
  return std::max(room, 0.0);
}

bool uses_gpus(const job_config& config) {
  return std::ranges::any_of(config.models, [](const auto& m) { return m.device.gpu; });
}

/// How many ranks of the same host before this one host a model on some GPU.
std::uint32_t gpu_rank_number(const job_config& config, const job_plan& job, rank_id rank,
                              const host_layout& layout) {
  std::set<std::uint32_t> before;
  for (const auto& [replica, other] : replicas_of(job))
    if (config.models[replica.model.value].device.gpu && other.value < rank.value &&
        layout.host_of_rank[other.value] == layout.host_of_rank[rank.value])
      before.insert(other.value);
  return static_cast<std::uint32_t>(before.size());
}

} // namespace

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

result<job_host> host_here(const job_config& config) {
  job_host host{"", available_memory_bytes(), {}};
  if (!uses_gpus(config))
    return host;
  const auto gpus = list_gpus();
  if (!gpus)
    return tl::unexpected(gpus.error());
  for (const auto& gpu : *gpus)
    host.gpu_bytes.push_back(gpu.free_bytes);
  return host;
}

result<std::optional<std::uint32_t>> gpu_of(const job_config& config, const job_plan& job,
                                            model_id model, rank_id rank,
                                            const host_layout& layout) {
  const device_choice& device = config.models[model.value].device;
  if (!device.gpu)
    return std::optional<std::uint32_t>();
  const auto& host = layout.hosts[layout.host_of_rank[rank.value]];
  const auto count = static_cast<std::uint32_t>(host.gpu_bytes.size());
  const std::uint32_t number =
      device.number.value_or(count > 0 ? gpu_rank_number(config, job, rank, layout) % count : 0);
  if (number >= count)
    return fail(errc::not_found, "model '" + job.models[model.value].name +
                                     "' wants cuda:" + std::to_string(number) + " on rank " +
                                     std::to_string(rank.value) + ", but its host " + host.name +
                                     " has " + std::to_string(count) + " GPUs");
  return std::optional(number);
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
  for (const auto& [replica, rank] : shares.replicas) {
    const auto& planned = job.models[replica.model.value];
    const auto& settings = config.models[replica.model.value];
    memory_model model;
    model.name = planned.name;
    if (planned.ranks.size() > 1)
      model.name += "/" + std::to_string(replica.index);
    model.weight_bytes = planned.weight_bytes;
    model.kv_bytes_per_block = planned.kv_bytes_per_block;
    const auto gpu = gpu_of(config, job, replica.model, rank, layout);
    if (!gpu)
      return tl::unexpected(gpu.error());
    const std::uint32_t host = layout.host_of_rank[rank.value];
    shares.places.push_back(*gpu ? "cuda:" + std::to_string(**gpu) : "cpu");
    model.shard_devices = {*gpu ? first_gpu[host] + **gpu : host};
    model.tokens_weight = 1.0 / static_cast<double>(planned.ranks.size());
    model.fixed_tokens = settings.kv_cache_tokens;
    model.max_tokens = std::uint64_t{planned.context_tokens_max} * settings.max_batch_rows;
    shares.models.push_back(std::move(model));
  }
  for (std::size_t i = 0; i < shares.models.size(); ++i) {
    auto& model = shares.models[i];
    const double fraction =
        config.models[shares.replicas[i].replica.model.value].kv_cache_mem_fraction;
    if (fraction <= 0 || model.fixed_tokens > 0)
      continue;
    const double blocks = fraction * room_bytes(shares, model.shard_devices.front()) /
                          static_cast<double>(model.kv_bytes_per_block);
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
