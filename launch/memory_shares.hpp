#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/plan.hpp"
#include "runtime/config/config.hpp"
#include "runtime/core/error.hpp"
#include "runtime/planning/memory_solver.hpp"

namespace tokenrouter {

/// One host of a job as the memory solver sees it.
struct job_host {
  std::string name;
  std::uint64_t memory_bytes = 0;       ///< free before the models load
  std::vector<std::uint64_t> gpu_bytes; ///< free memory of each GPU, likewise
};

struct host_layout {
  std::vector<job_host> hosts;
  std::vector<std::uint32_t> host_of_rank; ///< index into `hosts`
  double usable_fraction = 0.9;
  std::uint64_t reserved_bytes = 0; ///< of each host, of what is usable
};

/// Hosts that are all like `host`, `ranks_per_host` ranks on each, in order; 0: all on one.
host_layout equal_hosts(std::uint32_t ranks, std::uint32_t ranks_per_host, const job_host& host);

/// This host as it is now; its GPUs too where the config puts a model on one. Errors: unavailable
/// (there is no GPU).
result<job_host> host_here(const job_config& config);

/// Number of the GPU that a shard runs on; none: its host's CPUs. Shards of a replica that share a
/// rank get GPUs one after the other. Error: not_found (its host has no such GPU).
result<std::optional<std::uint32_t>> gpu_of(const job_config& config, const job_plan& job,
                                            const placed_shard& placed, const host_layout& layout);

/// Where a shard of a replica runs.
struct shard_place {
  shard_id shard;
  rank_id rank;
  std::size_t replica = 0;          ///< index into memory_shares::replicas
  std::optional<std::uint32_t> gpu; ///< none: cpu

  std::string device() const { return gpu ? "cuda:" + std::to_string(*gpu) : "cpu"; }
};

/// What the memory solver is asked for a job, and its answer.
struct memory_shares {
  std::vector<placed_replica> replicas; ///< index into `models` and plan.models
  std::vector<memory_device> devices;   ///< the hosts, then their GPUs
  std::vector<memory_model> models;     ///< one a replica
  std::vector<shard_place> shards;      ///< of all replicas, in their order
  memory_plan plan;

  /// Whether another model, or another replica, runs on the same device.
  bool is_shared(const shard_place& place) const {
    const std::uint32_t own = models[place.replica].shard_devices[place.shard.index];
    std::ptrdiff_t there = 0;
    for (const auto& model : models)
      there += std::ranges::count(model.shard_devices, own);
    return there > 1;
  }

  /// Whether none of those that share its device weighs less. Its work starts before theirs: a
  /// short step that waits for a long one loses more than the other way round.
  bool is_lightest(const shard_place& place) const {
    const auto weight = [](const memory_model& m) {
      return m.weight_bytes / m.shard_devices.size();
    };
    const auto& own = models[place.replica];
    const std::uint32_t device = own.shard_devices[place.shard.index];
    return std::ranges::none_of(models, [&](const memory_model& m) {
      return std::ranges::count(m.shard_devices, device) > 0 && weight(m) < weight(own);
    });
  }

  /// For tables: the replica's name, and which shard of it.
  std::string name_of(const shard_place& place) const {
    const auto& model = models[place.replica];
    return model.shard_devices.size() == 1
               ? model.name
               : model.name + " shard " + std::to_string(place.shard.index);
  }
};

/// Weights and KV sizes are those of `job`. `kv_cache.tokens` is fixed; `kv_cache.mem_fraction`
/// fixes that share of what all weights and the reserve leave of the host; other replicas share the
/// rest, so that all models hold as many tokens: one of R replicas an R-th of them. Except for
/// `kv_cache.tokens`, no replica gets more than `max_batch_rows` full contexts need. Errors: as
/// `solve_memory` and `gpu_of`; capacity if a pool would hold less than one full context;
/// invalid_argument if two shards of a replica would run on one GPU.
result<memory_shares> share_memory(const job_config& config, const job_plan& job,
                                   const host_layout& layout);

} // namespace tokenrouter
