#pragma once

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

/// Number of the GPU that a rank runs a model on; none: its host's CPUs. Error: not_found (its host
/// has no such GPU).
result<std::optional<std::uint32_t>> gpu_of(const job_config& config, const job_plan& job,
                                            model_id model, rank_id rank,
                                            const host_layout& layout);

/// What the memory solver is asked for a job, and its answer.
struct memory_shares {
  std::vector<placed_replica> replicas; ///< index into `models` and plan.models
  std::vector<memory_device> devices;   ///< the hosts, then their GPUs
  std::vector<memory_model> models;     ///< one a replica
  std::vector<std::string> places;      ///< of each replica: cpu or cuda:N
  memory_plan plan;
};

/// Weights and KV sizes are those of `job`. `kv_cache.tokens` is fixed; `kv_cache.mem_fraction`
/// fixes that share of what all weights and the reserve leave of the host; other replicas share the
/// rest, so that all models hold as many tokens: one of R replicas an R-th of them. Except for
/// `kv_cache.tokens`, no replica gets more than `max_batch_rows` full contexts need. Errors: as
/// `solve_memory` and `gpu_of`; capacity if a pool would hold less than one full context.
result<memory_shares> share_memory(const job_config& config, const job_plan& job,
                                   const host_layout& layout);

} // namespace tokenrouter
