#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"

/// Shares the memory of devices among the KV pools of a job's models. A live request needs KV in
/// every model it may visit, so what counts is how many tokens all models hold at once, and the
/// tightest device decides it.
namespace tokenrouter {

struct memory_device {
  std::string name;                 ///< for messages, e.g. cuda:0
  std::uint64_t memory_bytes = 0;   ///< free before the job's models load
  double usable_fraction = 1;       ///< of these that the job may use, over 0 to 1
  std::uint64_t reserved_bytes = 0; ///< of the usable: graphs, activations; not for weights or KV
};

/// One model of the job. Its shards split weights and KV evenly (rounded up to whole bytes).
struct memory_model {
  std::string name; ///< for messages
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes_per_block = 1;     ///< of limits::block_tokens tokens, over all shards
  std::vector<std::uint32_t> shard_devices; ///< device of each shard; tensor parallel: several
  double tokens_weight = 1;       ///< tokens it holds for each that a model of weight 1 holds
  std::uint64_t fixed_tokens = 0; ///< asked for by the user; 0 = a share of what is left
  std::uint64_t max_tokens = 0;   ///< more would be of no use; 0 = no bound
};

/// What one shard of a model gets.
struct shard_memory {
  std::uint32_t device = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  double kv_fraction = 0; ///< of the device's memory_bytes
};

struct model_share {
  std::uint64_t kv_blocks = 0; ///< of limits::block_tokens tokens each
  std::uint64_t kv_tokens = 0; ///< of these blocks
  std::vector<shard_memory> shards;
};

struct device_share {
  std::uint64_t usable_bytes = 0; ///< memory_bytes * usable_fraction
  std::uint64_t reserved_bytes = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t unused_bytes = 0; ///< usable, less all of the above
};

struct memory_plan {
  std::vector<model_share> models;   ///< as given
  std::vector<device_share> devices; ///< as given
};

/// Every model of weight w without fixed tokens gets T * w tokens, in whole blocks, no more than
/// its bound. Fixed tokens come first, rounded up to whole blocks. T is the least, over the
/// devices, of what weights, reserved and fixed leave, by the KV bytes per token that its models
/// need there; what a bounded model does not take, the others get. Errors (capacity): a device
/// whose memory the weights, the fixed tokens or one block of each model exceed, with the figures;
/// (invalid_argument): a fraction, a weight or fixed tokens out of range. Requires shard devices
/// that exist, at least one a model, and kv_bytes_per_block from 1 to 2^27.
result<memory_plan> solve_memory(const std::vector<memory_device>& devices,
                                 const std::vector<memory_model>& models);

/// Requests of that many tokens that a model holds at once. A model of weight w holds w times as
/// many tokens of each. Requires context_tokens >= 1.
std::uint64_t concurrent_requests(const memory_model& model, const model_share& memory,
                                  std::uint64_t context_tokens);

/// Requests of that many tokens that every model holds at once.
std::uint64_t concurrent_requests(const std::vector<memory_model>& models, const memory_plan& plan,
                                  std::uint64_t context_tokens);

} // namespace tokenrouter
