#include "launch/plan.hpp"

#include <algorithm>
#include <fstream>

#include "runtime/config/load.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"
#include "runtime/exec/heads/head.hpp"
#include "runtime/exec/model_config.hpp"
#include "runtime/policy/placement.hpp"

namespace tokenrouter {

namespace {

/// Adds what the model's own files say to `planned`, and its end-of-sequence tokens to the job's.
result<void> read_model(const model_settings& settings, planned_model& planned, job_plan& plan) {
  const auto config = load_model_config(settings.path);
  if (!config)
    return tl::unexpected(config.error());
  planned.vocab_tokens = config->vocab_tokens;
  planned.context_tokens_max = config->context_tokens_max;
  for (token_id eos : config->eos_tokens)
    if (std::find(plan.eos_tokens.begin(), plan.eos_tokens.end(), eos) == plan.eos_tokens.end())
      plan.eos_tokens.push_back(eos);
  return {};
}

/// Models that exchange token ids must agree on what each id means.
result<void> read_vocabularies(const job_config& config, job_plan& plan) {
  const model_settings* first = nullptr;
  for (std::size_t i = 0; i < config.models.size(); ++i) {
    const auto& settings = config.models[i];
    auto words = tokenizer::load(settings.path);
    if (!words)
      return tl::unexpected(words.error());
    if (first == nullptr) {
      first = &settings;
      plan.vocabulary_fingerprint = words->fingerprint();
      plan.vocab_tokens = words->vocab_tokens();
    } else if (words->fingerprint() != plan.vocabulary_fingerprint) {
      return fail(errc::mismatch,
                  "models '" + first->name + "' and '" + settings.name +
                      "' have different vocabularies (" + std::to_string(plan.vocab_tokens) +
                      " and " + std::to_string(words->vocab_tokens()) +
                      " tokens, or other text for the same ids): they can't exchange tokens; "
                      "choose models with one tokenizer");
    }
    if (settings.name == config.system.entry_model)
      plan.words = std::make_shared<const tokenizer>(std::move(*words));
  }
  for (const auto& model : plan.models)
    plan.vocab_tokens = std::min(plan.vocab_tokens, model.vocab_tokens);
  return {};
}

result<void> plan_method(const job_config& config, job_plan& plan) {
  plan.parameters = {config.method.switching_strategy, config.method.threshold,
                     config.method.thresholds};
  for (std::size_t i = 0; i < config.models.size(); ++i) {
    plan.topology.roles.push_back(config.models[i].role);
    if (config.models[i].name == config.system.entry_model)
      plan.entry = {static_cast<std::uint16_t>(i)};
  }
  plan.topology.entry = plan.entry;
  if (!plan.parameters.threshold && !config.method.router.empty()) {
    const auto own = head_threshold({config.method.name, config.method.router});
    if (!own)
      return tl::unexpected(own.error());
    plan.parameters.threshold = *own;
  }
  for (std::size_t i = 0; i < plan.models.size(); ++i) {
    auto role = role_of(plan, {static_cast<std::uint16_t>(i)});
    if (!role)
      return tl::unexpected(role.error());
    for (const auto& kind : (*role)->needs().heads)
      plan.models[i].load.heads.push_back({kind, config.method.router});
  }
  return {};
}

} // namespace

result<std::unique_ptr<method_role>> role_of(const job_plan& plan, model_id model) {
  return make_role(model, plan.topology, plan.parameters);
}

result<job_plan> plan_job(const job_config& config, std::uint32_t rank_count) {
  job_plan plan;
  plan.config_hash = config_hash(config);
  plan.context_tokens_max = UINT32_MAX;
  for (const auto& settings : config.models) {
    planned_model planned;
    planned.name = settings.name;
    planned.load.model_path = settings.path;
    planned.load.compute = settings.compute;
    if (auto ok = read_model(settings, planned, plan); !ok)
      return tl::unexpected(ok.error());
    plan.context_tokens_max = std::min(plan.context_tokens_max, planned.context_tokens_max);
    plan.models.push_back(std::move(planned));
  }
  if (auto ok = read_vocabularies(config, plan); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = plan_method(config, plan); !ok)
    return tl::unexpected(ok.error());

  std::vector<placement_wish> wishes;
  for (std::size_t i = 0; i < plan.models.size(); ++i) {
    auto& planned = plan.models[i];
    planned.load.vocab_legal_tokens = plan.vocab_tokens;
    const auto memory = estimate_cpu_memory(planned.load);
    if (!memory)
      return tl::unexpected(memory.error());
    planned.weight_bytes = memory->weight_bytes;
    planned.kv_bytes_per_block = memory->kv_bytes_per_block;
    const auto& ranks = config.models[i].ranks;
    wishes.push_back({ranks.empty() ? std::nullopt : std::optional(rank_id{ranks.front()}),
                      planned.weight_bytes});
  }
  const auto placed = place_models(wishes, plan.entry, rank_count);
  for (std::size_t i = 0; i < plan.models.size(); ++i)
    plan.models[i].rank = placed[i];
  return plan;
}

result<kv_budget> budget_of(const job_config& config, const job_plan& plan, model_id model,
                            std::uint64_t memory_bytes, std::uint32_t models_on_host) {
  const auto& planned = plan.models[model.value];
  const auto& settings = config.models[model.value];
  kv_budget_input in;
  in.memory_bytes = memory_bytes;
  in.models_on_device = models_on_host;
  in.weight_bytes = planned.weight_bytes;
  in.kv_bytes_per_block = planned.kv_bytes_per_block;
  in.kv_cache_tokens = settings.kv_cache_tokens;
  in.kv_cache_mem_fraction = settings.kv_cache_mem_fraction;
  in.max_batch_rows = settings.max_batch_rows;
  in.context_tokens_max = planned.context_tokens_max;
  const auto budget = plan_kv_budget(in);
  if (!budget.fits)
    return fail(errc::capacity,
                "model '" + planned.name + "' does not fit: weights and KV need " +
                    std::to_string(budget.needed_bytes >> 20) + " MiB, its share of the host's " +
                    std::to_string(memory_bytes >> 20) + " MiB of free memory is " +
                    std::to_string(budget.share_bytes >> 20) +
                    " MiB; lower kv_cache.tokens, or put it on a host of its own with `ranks`");
  return budget;
}

std::uint64_t available_memory_bytes() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  std::uint64_t kib = 0;
  while (in >> key >> kib >> unit)
    if (key == "MemAvailable:")
      return kib * 1024;
  return 0;
}

} // namespace tokenrouter
