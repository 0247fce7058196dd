#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/planner_state.hpp"
#include "launch/method_library.hpp"
#include "runtime/config/config.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/policy/delayed_batching.hpp"
#include "runtime/text/tokenizer.hpp"

namespace tokenrouter {

/// Everything about one model of the job that follows from the config and the model's folder,
/// weights unread. The same on every rank.
struct planned_model {
  std::string name;
  std::vector<rank_id> ranks;     ///< of each shard, replica by replica
  std::uint32_t shards = 1;       ///< of each replica
  load_options load;              ///< heads and legal vocabulary included; `threads` and the place
                                  ///< in the group are this rank's to set
  std::uint32_t vocab_tokens = 0; ///< width of the logits
  std::uint32_t context_tokens_max = 0;
  std::uint64_t weight_bytes = 0; ///< of all shards of a replica
  std::uint64_t kv_bytes_per_block = 0;

  std::size_t replicas() const { return ranks.size() / shards; }
};

/// What every rank computes alike before it spawns anything.
struct job_plan {
  std::vector<planned_model> models; ///< index = model_id
  model_id entry;
  /// Makes roles and entry of a custom method; null: the registry does.
  std::shared_ptr<const method_library> library;
  method_topology topology;
  method_parameters parameters;         ///< threshold taken from the head's JSON where left out
  std::vector<token_id> eos_tokens;     ///< of all models
  std::uint32_t context_tokens_max = 0; ///< smallest of all models
  std::uint32_t vocab_tokens = 0;       ///< ids below are legal for every model and the tokenizer
  std::uint64_t vocabulary_fingerprint = 0;
  std::shared_ptr<const tokenizer> words; ///< of the entry model
  token_id defer_row = -1; ///< id of method.defer_token, a row of the entry model's LM head
  std::uint64_t config_hash = 0;
};

/// Reads what the models' folders say and places the models over `rank_count` ranks. Errors: a
/// folder that can't be read, vocabularies that differ (both models named), a method that can't be
/// built.
result<job_plan> plan_job(const job_config& config, std::uint32_t rank_count);

/// Roles of every model can be made: called by `plan_job`, and again where they are used.
result<std::unique_ptr<method_role>> role_of(const job_plan& plan, model_id model);

/// The rule by which requests start can be made: as above.
result<std::unique_ptr<method_entry>> entry_of(const job_plan& plan);

/// Every replica of the job, model by model, with the rank of its leading shard.
struct placed_replica {
  replica_id replica;
  rank_id rank;
};
std::vector<placed_replica> replicas_of(const job_plan& plan);

/// Every shard of the job, in the same order.
struct placed_shard {
  shard_id shard;
  rank_id rank;
};
std::vector<placed_shard> shards_of(const job_plan& plan);

/// Batching thresholds of every model as configured.
std::vector<batching_thresholds> thresholds_of(const job_config& config);

/// What the planner works on, if any model's thresholds are to set themselves.
std::optional<planner_config> automatic_batching(const job_config& config, const job_plan& plan);

/// Memory free on this host, in bytes (MemAvailable).
std::uint64_t available_memory_bytes();

} // namespace tokenrouter
