#include "launch/local_models.hpp"

#include <algorithm>

#include "gpu/cuda_backend.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"

namespace tokenrouter {

namespace {

/// `cuda`: none to run on the CPU.
model_loader make_loader(load_options load, const std::optional<cuda_options>& cuda) {
  return [load = std::move(load), cuda](const shard_group& group) mutable {
    load.group = group;
    return cuda ? make_cuda_backend(load, *cuda) : make_cpu_backend(load);
  };
}

bool exchanges_kv(const model_settings& x) {
  return x.prefix_cache && x.prefix_fetch != kv_fetch::off && x.replicas_count > 1;
}

local_replica make_replica(const job_config& config, const job_plan& job, replica_id id,
                           std::uint32_t kv_blocks) {
  const model_id model = id.model;
  const auto& settings = config.models[model.value];
  local_replica replica;
  replica.facts.replica = id;
  replica.kv_blocks = kv_blocks;
  replica.facts.pool_tokens = replica.kv_blocks * limits::block_tokens;
  replica.facts.vocab_tokens = job.vocab_tokens;
  replica.facts.vocabulary_fingerprint = job.vocabulary_fingerprint;
  replica.limits = {settings.max_batch_rows, settings.prefill_chunk_tokens};
  replica.keep_prefixes = settings.prefix_cache;
  replica.drop_kv = settings.drop_kv;
  if (exchanges_kv(settings))
    replica.fetch_min_tokens = settings.prefix_fetch_min_tokens;
  replica.reads_in_place = settings.prefix_fetch == kv_fetch::any_way;
  replica.make_role = [&job, model]() -> std::unique_ptr<const method_role> {
    auto role = role_of(job, model);
    check(role.has_value(), "a role that was planned can be made");
    return std::move(*role);
  };
  return replica;
}

} // namespace

void plan_models(const job_config& config, const job_plan& job, const memory_shares& shares,
                 const std::function<std::uint32_t(model_id)>& threads,
                 const std::vector<int>& all_cores, rank_plan& plan) {
  std::size_t first_core = 0;
  for (const shard_place& place : shares.shards) {
    if (place.shard.index == 0)
      plan.replicas.push_back({place.shard.replica, place.rank});
    else
      plan.shards.emplace(place.shard, place.rank);
    if (place.rank != plan.self)
      continue;
    const model_id model = place.shard.replica.model;
    load_options load = job.models[model.value].load;
    load.threads = threads(model);
    std::vector<int> cores;
    for (std::size_t c = first_core; c < std::min(first_core + load.threads, all_cores.size()); ++c)
      cores.push_back(all_cores[c]);
    first_core += load.threads;
    const auto kv_blocks = static_cast<std::uint32_t>(shares.plan.models[place.replica].kv_blocks);
    std::optional<cuda_options> cuda;
    if (place.gpu) {
      const bool shared = shares.is_shared(place);
      cuda = {.device = *place.gpu,
              .one_kernel = config.models[model.value].one_kernel.value_or(!shared)
                                ? std::nullopt
                                : std::optional(false),
              .first = shared && shares.is_lightest(place)};
    }
    auto& stop = plan.stop_shards[place.shard.replica];
    if (!stop)
      stop = std::make_shared<std::atomic<bool>>(false);
    const shard_group group{place.shard.index, load.group.count, {}, stop};
    if (place.shard.index > 0) {
      load.heads.clear(); // the leading shard scores
      const auto& settings = config.models[model.value];
      plan.followers.push_back({.self = place.shard,
                                .group = group,
                                .kv_blocks = kv_blocks,
                                .moves_kv = exchanges_kv(settings),
                                .reads_in_place = settings.prefix_fetch == kv_fetch::any_way,
                                .cores = std::move(cores),
                                .load = make_loader(std::move(load), cuda)});
      continue;
    }
    local_replica replica = make_replica(config, job, place.shard.replica, kv_blocks);
    replica.cores = std::move(cores);
    replica.group = group;
    if (group.count > 1)
      replica.make_group = make_cuda_group;
    replica.load = make_loader(std::move(load), cuda);
    plan.local.push_back(std::move(replica));
  }
}

} // namespace tokenrouter
