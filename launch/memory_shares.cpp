#include "launch/memory_shares.hpp"

#include <algorithm>
#include <string>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

/// What the weights of all its models and the reserve leave of a host.
double room_bytes(const memory_shares& shares, std::uint32_t device) {
  const auto& host = shares.devices[device];
  double room = static_cast<double>(host.memory_bytes) * host.usable_fraction -
                static_cast<double>(host.reserved_bytes);
  for (const auto& model : shares.models)
    if (model.shard_devices.front() == device)
      room -= static_cast<double>(model.weight_bytes);
  return std::max(room, 0.0);
}

} // namespace

host_layout equal_hosts(std::uint32_t ranks, std::uint32_t ranks_per_host,
                        std::uint64_t memory_bytes) {
  const std::uint32_t per_host = ranks_per_host > 0 ? ranks_per_host : ranks;
  host_layout layout;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank % per_host == 0)
      layout.hosts.push_back({"host " + std::to_string(rank / per_host), memory_bytes});
    layout.host_of_rank.push_back(rank / per_host);
  }
  return layout;
}

result<memory_shares> share_memory(const job_config& config, const job_plan& job,
                                   const host_layout& layout) {
  memory_shares shares;
  shares.replicas = replicas_of(job);
  for (const auto& host : layout.hosts)
    shares.devices.push_back(
        {host.name, host.memory_bytes, layout.usable_fraction, layout.reserved_bytes});
  for (const auto& [replica, rank] : shares.replicas) {
    const auto& planned = job.models[replica.model.value];
    const auto& settings = config.models[replica.model.value];
    memory_model model;
    model.name = planned.name;
    if (planned.ranks.size() > 1)
      model.name += "/" + std::to_string(replica.index);
    model.weight_bytes = planned.weight_bytes;
    model.kv_bytes_per_block = planned.kv_bytes_per_block;
    model.shard_devices = {layout.host_of_rank[rank.value]};
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
