#pragma once

#include <cstdint>

namespace tokenrouter {

struct kv_budget_input {
  std::uint64_t memory_bytes = 0;     ///< of the device, free before this job's models load
  std::uint32_t models_on_device = 1; ///< of all ranks on the host, this one included
  std::uint64_t weight_bytes = 0;     ///< of this model
  std::uint64_t kv_bytes_per_block = 1;
  std::uint64_t kv_cache_tokens = 0; ///< asked for; 0 = by fraction
  double kv_cache_mem_fraction = 0;  ///< of this model's share, weights excluded; 0 = default
  std::uint32_t max_batch_rows = 1;
  std::uint32_t context_tokens_max = 1;
};

struct kv_budget {
  std::uint32_t blocks = 0;
  bool fits = false;              ///< weights and these blocks are within the model's share
  std::uint64_t share_bytes = 0;  ///< memory_bytes / models_on_device
  std::uint64_t needed_bytes = 0; ///< weights plus the smallest useful pool, or what was asked for
};

/// Blocks of a model's KV pool. Asked-for tokens are taken as they are; otherwise half (or
/// mem_fraction) of what the weights leave of the model's equal share of the device, and no more
/// than max_batch_rows full contexts can use. `fits` is false when that is under one full context,
/// or when what was asked for exceeds the share.
kv_budget plan_kv_budget(const kv_budget_input& in);

} // namespace tokenrouter
