#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/policy/kv_budget.hpp"
#include "runtime/text/tokenizer.hpp"

namespace tokenrouter {

/// Everything about one model of the job that follows from the config and the model's folder,
/// weights unread. The same on every rank.
struct planned_model {
  std::string name;
  rank_id rank;                   ///< where replica 0 lives
  load_options load;              ///< heads and legal vocabulary included; `threads` is this
                                  ///< rank's to set
  std::uint32_t vocab_tokens = 0; ///< width of the logits
  std::uint32_t context_tokens_max = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes_per_block = 0;
};

/// What every rank computes alike before it spawns anything.
struct job_plan {
  std::vector<planned_model> models; ///< index = model_id
  model_id entry;
  method_topology topology;
  method_parameters parameters;         ///< threshold taken from the head's JSON where left out
  std::vector<token_id> eos_tokens;     ///< of all models
  std::uint32_t context_tokens_max = 0; ///< smallest of all models
  std::uint32_t vocab_tokens = 0;       ///< ids below are legal for every model and the tokenizer
  std::uint64_t vocabulary_fingerprint = 0;
  std::shared_ptr<const tokenizer> words; ///< of the entry model
  std::uint64_t config_hash = 0;
};

/// Reads what the models' folders say and places the models over `rank_count` ranks. Errors: a
/// folder that can't be read, vocabularies that differ (both models named), a method that can't be
/// built.
result<job_plan> plan_job(const job_config& config, std::uint32_t rank_count);

/// Roles of every model can be made: called by `plan_job`, and again where they are used.
result<std::unique_ptr<method_role>> role_of(const job_plan& plan, model_id model);

/// KV pool of a model on a host with `memory_bytes` free and `models_on_host` models of the job.
/// Error: capacity, with the figures.
result<kv_budget> budget_of(const job_config& config, const job_plan& plan, model_id model,
                            std::uint64_t memory_bytes, std::uint32_t models_on_host);

/// Memory free on this host, in bytes (MemAvailable).
std::uint64_t available_memory_bytes();

} // namespace tokenrouter
