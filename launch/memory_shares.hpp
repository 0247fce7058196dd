#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/host_layout.hpp"
#include "launch/plan.hpp"
#include "runtime/config/config.hpp"
#include "runtime/core/error.hpp"
#include "runtime/planning/memory_solver.hpp"

namespace tokenrouter {

/// The GPUs that this process sees, where the config puts a model on one. Errors: unavailable
/// (there is no GPU).
result<std::vector<visible_gpu>> gpus_here(const job_config& config);

/// This host as this process sees it now, likewise.
result<job_host> host_here(const job_config& config);

struct gpu_choice {
  std::uint32_t number = 0;  ///< as its rank sees it
  std::uint32_t of_host = 0; ///< index into its host's GPUs
};

/// The GPU that a shard runs on; none: its host's CPUs. Shards of a replica that share a rank get
/// GPUs one after the other; without a number, ranks that see the same GPUs take turns. Error:
/// not_found (its rank sees no such GPU).
result<std::optional<gpu_choice>> gpu_of(const job_config& config, const job_plan& job,
                                         const placed_shard& placed, const host_layout& layout);

/// Where a shard of a replica runs.
struct shard_place {
  shard_id shard;
  rank_id rank;
  std::size_t replica = 0;          ///< index into memory_shares::replicas
  std::optional<std::uint32_t> gpu; ///< as its rank sees it; none: cpu

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
