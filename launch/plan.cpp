#include "launch/plan.hpp"

#include <algorithm>
#include <fstream>

#include "gpu/cuda_backend.hpp"
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

result<void> estimate_memory(const device_choice& device, planned_model& planned) {
  const auto memory =
      device.gpu ? estimate_cuda_memory(planned.load) : estimate_cpu_memory(planned.load);
  if (!memory)
    return tl::unexpected(memory.error());
  planned.weight_bytes = memory->weight_bytes * planned.shards;
  planned.kv_bytes_per_block = memory->kv_bytes_per_block * planned.shards;
  return {};
}

/// Co-LLM's deferral token is an output of the base model alone: it is never sampled, and models
/// that agree on the ids below it may exchange tokens. Says how many ids may be sampled.
result<std::uint32_t> sampled_tokens(const std::string& defer_token, const tokenizer& words,
                                     job_plan& plan) {
  if (defer_token.empty())
    return words.vocab_tokens();
  const auto id = words.added_token_id(defer_token);
  if (!id)
    return fail(errc::not_found, "method.defer_token: the entry model's tokenizer has no added "
                                 "token '" +
                                     defer_token + "'");
  if (static_cast<std::uint32_t>(*id) + 1 != words.vocab_tokens())
    return fail(errc::mismatch, "method.defer_token: '" + defer_token + "' has id " +
                                    std::to_string(*id) +
                                    ", but it must be the last of the tokenizer's " +
                                    std::to_string(words.vocab_tokens()));
  plan.defer_row = *id;
  return static_cast<std::uint32_t>(*id);
}

/// Models that exchange token ids must agree on what each id means.
result<void> read_vocabularies(const job_config& config, job_plan& plan) {
  std::vector<tokenizer> words;
  std::size_t entry = 0;
  for (std::size_t i = 0; i < config.models.size(); ++i) {
    auto loaded = tokenizer::load(config.models[i].path);
    if (!loaded)
      return tl::unexpected(loaded.error());
    words.push_back(std::move(*loaded));
    if (config.models[i].name == config.system.entry_model)
      entry = i;
  }
  const auto sampled = sampled_tokens(config.method.parameters.defer_token, words[entry], plan);
  if (!sampled)
    return tl::unexpected(sampled.error());
  plan.vocab_tokens = *sampled;
  plan.vocabulary_fingerprint = words[entry].fingerprint_below(*sampled);
  for (std::size_t i = 0; i < words.size(); ++i) {
    plan.vocab_tokens = std::min(plan.vocab_tokens, plan.models[i].vocab_tokens);
    const bool wider = i != entry && words[i].vocab_tokens() > *sampled &&
                       config.method.parameters.defer_token.empty();
    if (!wider && words[i].fingerprint_below(*sampled) == plan.vocabulary_fingerprint)
      continue;
    return fail(errc::mismatch,
                "models '" + config.models[entry].name + "' and '" + config.models[i].name +
                    "' have different vocabularies (" +
                    std::to_string(words[entry].vocab_tokens()) + " and " +
                    std::to_string(words[i].vocab_tokens()) +
                    " tokens, or other text for the same ids): they can't exchange tokens; "
                    "choose models with one tokenizer");
  }
  plan.words = std::make_shared<const tokenizer>(std::move(words[entry]));
  return {};
}

/// What roles read of the vocabulary.
result<void> describe_words(const tokenizer& words, method_parameters& parameters) {
  auto bytes = std::make_shared<std::vector<std::string>>(words.vocab_tokens());
  for (std::uint32_t id = 0; id < words.vocab_tokens(); ++id)
    (*bytes)[id] = words.token_bytes(static_cast<token_id>(id));
  parameters.token_bytes = std::move(bytes);
  if (!words.added_token_id("</think>"))
    return {};
  auto end = words.encode("\n</think>\n\n");
  if (!end)
    return tl::unexpected(end.error());
  parameters.end_of_thinking = std::move(*end);
  return {};
}

/// Whether the head's own threshold stands in for one that is left out.
bool takes_threshold_of_head(const method_settings& method) {
  if (method.parameters.threshold || method.router.empty())
    return false;
  if (method.name == "r2r")
    return method.parameters.switching_strategy.starts_with("neural");
  return method.name == "citer" || method.name == "co-llm" || method.name == "custom";
}

result<head_spec> plan_head(const std::string& kind, std::uint32_t window_positions,
                            const method_settings& method, const job_plan& plan,
                            const planned_model& model) {
  if (kind == "collm_row")
    return head_spec{kind, model.load.model_path, 1, plan.defer_row};
  if (method.router.empty())
    return fail(errc::not_found, "method needs router, the weights of the routing head '" + kind +
                                     "' that a role of model '" + model.name + "' asks for");
  head_spec spec{kind, method.router, kind == "r2r_multi" ? window_positions : 1, -1};
  if (auto described = check_head_description(spec); !described)
    return tl::unexpected(described.error());
  return spec;
}

result<void> plan_method(const job_config& config, job_plan& plan) {
  plan.parameters = config.method.parameters;
  for (std::size_t i = 0; i < config.models.size(); ++i) {
    plan.topology.roles.push_back(config.models[i].role);
    if (config.models[i].name == config.system.entry_model)
      plan.entry = {static_cast<std::uint16_t>(i)};
  }
  plan.topology.entry = plan.entry;
  if (auto ok = describe_words(*plan.words, plan.parameters); !ok)
    return tl::unexpected(ok.error());
  if (takes_threshold_of_head(config.method)) {
    const head_spec any{"", config.method.router};
    if (auto described = check_head_description(any); !described)
      return tl::unexpected(described.error());
    if (const auto own = head_threshold(any))
      plan.parameters.threshold = *own;
  }
  if (config.method.name == "custom") {
    auto library = method_library::open(config.method.library);
    if (!library)
      return tl::unexpected(library.error());
    plan.library = std::move(*library);
  }
  for (std::size_t i = 0; i < plan.models.size(); ++i) {
    auto role = role_of(plan, {static_cast<std::uint16_t>(i)});
    if (!role)
      return tl::unexpected(role.error());
    const role_needs needs = (*role)->needs();
    for (const auto& kind : needs.heads) {
      auto spec = plan_head(kind, needs.head_window_positions, config.method, plan, plan.models[i]);
      if (!spec)
        return tl::unexpected(spec.error());
      plan.models[i].load.heads.push_back(std::move(*spec));
    }
  }
  if (const auto entry = entry_of(plan); !entry)
    return tl::unexpected(entry.error());
  return {};
}

} // namespace

result<std::unique_ptr<method_role>> role_of(const job_plan& plan, model_id model) {
  return plan.library ? plan.library->make_role(model, plan.topology, plan.parameters)
                      : make_role(model, plan.topology, plan.parameters);
}

result<std::unique_ptr<method_entry>> entry_of(const job_plan& plan) {
  return plan.library ? plan.library->make_entry(plan.topology, plan.parameters)
                      : make_entry(plan.topology, plan.parameters);
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
    planned.load.dummy_weights = settings.dummy_weights;
    planned.shards = planned.load.group.count = settings.shards_count;
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
  std::size_t entry_wish = 0;
  for (std::size_t i = 0; i < plan.models.size(); ++i) {
    auto& planned = plan.models[i];
    planned.load.vocab_legal_tokens = plan.vocab_tokens;
    if (auto ok = estimate_memory(config.models[i].device, planned); !ok)
      return tl::unexpected(ok.error());
    const auto& ranks = config.models[i].ranks;
    for (std::uint32_t k = 0; k < config.models[i].replicas_count * planned.shards; ++k) {
      if (i == plan.entry.value && k == 0)
        entry_wish = wishes.size();
      wishes.push_back(
          {ranks.empty() ? std::nullopt : std::optional(rank_id{ranks[ranks.size() == 1 ? 0 : k]}),
           planned.weight_bytes / planned.shards});
    }
  }
  const auto placed = place_replicas(wishes, entry_wish, rank_count);
  auto next = placed.begin();
  for (std::size_t i = 0; i < plan.models.size(); ++i)
    for (std::uint32_t k = 0; k < config.models[i].replicas_count * plan.models[i].shards; ++k)
      plan.models[i].ranks.push_back(*next++);
  return plan;
}

std::vector<placed_replica> replicas_of(const job_plan& plan) {
  std::vector<placed_replica> all;
  for (const auto& [shard, rank] : shards_of(plan))
    if (shard.index == 0)
      all.push_back({shard.replica, rank});
  return all;
}

std::vector<placed_shard> shards_of(const job_plan& plan) {
  std::vector<placed_shard> all;
  for (std::size_t i = 0; i < plan.models.size(); ++i)
    for (std::size_t k = 0; k < plan.models[i].ranks.size(); ++k) {
      const auto replica = static_cast<std::uint16_t>(k / plan.models[i].shards);
      const auto index = static_cast<std::uint16_t>(k % plan.models[i].shards);
      all.push_back({{{{static_cast<std::uint16_t>(i)}, replica}, index}, plan.models[i].ranks[k]});
    }
  return all;
}

std::vector<batching_thresholds> thresholds_of(const job_config& config) {
  std::vector<batching_thresholds> all;
  for (const auto& model : config.models)
    all.push_back(model.delayed_batching_threshold);
  return all;
}

std::optional<planner_config> automatic_batching(const job_config& config, const job_plan& plan) {
  planner_config out;
  out.models = static_cast<std::uint32_t>(config.models.size());
  out.entry = plan.entry;
  out.configured = thresholds_of(config);
  for (const auto& model : config.models)
    out.automatic.push_back(model.auto_batching);
  const bool any =
      std::find(out.automatic.begin(), out.automatic.end(), true) != out.automatic.end();
  return any && out.models <= chain_models_max ? std::optional(std::move(out)) : std::nullopt;
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
