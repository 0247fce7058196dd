#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// A GPU as a rank sees it.
struct visible_gpu {
  std::string id; ///< the same for every process of the host
  std::uint64_t free_bytes = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, visible_gpu& x) {
    return f(x.id, x.free_bytes);
  }
};

/// One host of a job as the memory solver sees it.
struct job_host {
  std::string name;
  std::uint64_t memory_bytes = 0;       ///< free before the models load
  std::vector<std::uint64_t> gpu_bytes; ///< free memory of each GPU, likewise
  std::vector<std::string> gpu_ids{};   ///< of each, where it is known
};

struct host_layout {
  std::vector<job_host> hosts;
  std::vector<std::uint32_t> host_of_rank; ///< index into `hosts`
  /// What each rank sees as cuda:0, cuda:1, …: indices into its host's GPUs. A launcher may show
  /// each rank other ones. Empty: every rank sees all of them, in order.
  std::vector<std::vector<std::uint32_t>> gpus_of_rank{};
  double usable_fraction = 0.9;
  std::uint64_t reserved_bytes = 0; ///< of each host, of what is usable

  /// What that rank sees, as in gpus_of_rank.
  std::vector<std::uint32_t> gpus_seen_by(rank_id rank) const;
};

/// Adds the next rank, with what it found.
void add_rank(host_layout& layout, const std::string& host, std::uint64_t memory_bytes,
              const std::vector<visible_gpu>& gpus);

/// Hosts that are all like `host`, `ranks_per_host` ranks on each, in order; 0: all on one.
host_layout equal_hosts(std::uint32_t ranks, std::uint32_t ranks_per_host, const job_host& host);

} // namespace tokenrouter
