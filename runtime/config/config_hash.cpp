#include "runtime/config/load.hpp"

#include <bit>
#include <string_view>

namespace tokenrouter {

namespace {

/// FNV-1a 64 over values with their lengths or in 8 bytes each, so that no two dumps run together.
class hasher {
 public:
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    for (const char c : text)
      add_byte(static_cast<unsigned char>(c));
  }
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      add_byte((number >> shift) & 0xFF);
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }

  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(std::uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001B3u; }

  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

void add_optional(const std::optional<double>& number, hasher& hash) {
  hash.add(std::uint64_t{number ? 1u : 0u});
  hash.add(number.value_or(0));
}

void add_list(const std::vector<double>& numbers, hasher& hash) {
  hash.add(std::uint64_t{numbers.size()});
  for (const double number : numbers)
    hash.add(number);
}

/// Of the parameters that a config sets; the rest follows from the models.
void add_parameters(const method_parameters& p, hasher& hash) {
  for (const std::string& word :
       {p.switching_strategy, p.head_form, p.schedule, p.combine, p.defer_token, p.entropy_unit,
        p.on_return, p.answer_by, p.thinking, p.random_mode, p.score_source, p.head_kind})
    hash.add(word);
  for (const auto& number :
       {p.threshold, p.aleatoric_threshold, p.epistemic_threshold, p.entropy_threshold})
    add_optional(number, hash);
  add_list(p.thresholds, hash);
  add_list(p.weights, hash);
  for (const double number :
       {p.momentum_decay_fraction, p.quick_to_reference_threshold, p.reference_to_quick_threshold,
        p.reference_share, p.schedule_start_threshold, p.small_to_large_share,
        p.large_to_small_share})
    hash.add(number);
  for (const std::uint32_t number :
       {p.window_tokens, p.warmup_tokens, p.step_tokens_max, p.thinking_tokens_max,
        p.first_small_steps_count, p.score_tail_tokens, p.draft_tokens,
        std::uint32_t{p.has_router}})
    hash.add(std::uint64_t{number});
  hash.add(std::uint64_t{p.options.size()});
  for (const auto& [name, value] : p.options) {
    hash.add(name);
    hash.add(value);
  }
}

} // namespace

std::uint64_t config_hash(const job_config& config) {
  hasher hash;
  hash.add(config.system.entry_model);
  hash.add(config.system.on_peer_loss);
  hash.add(std::uint64_t{config.system.heartbeat_ms});
  hash.add(std::uint64_t{config.system.peer_timeout_ms});
  hash.add(std::uint64_t{config.system.delayed_batching_timeout_ms});
  hash.add(config.system.log_level);
  hash.add(std::uint64_t{config.models.size()});
  for (const model_settings& model : config.models) {
    hash.add(model.name);
    hash.add(model.role);
    hash.add(std::uint64_t{model.ranks.size()});
    for (const std::uint32_t rank : model.ranks)
      hash.add(std::uint64_t{rank});
    hash.add(std::uint64_t{model.replicas_count});
    hash.add(std::uint64_t{model.shards_count});
    hash.add(std::uint64_t{model.delayed_batching_threshold.size()});
    for (const std::uint32_t threshold : model.delayed_batching_threshold)
      hash.add(std::uint64_t{threshold});
    hash.add(std::uint64_t{model.auto_batching});
    hash.add(std::uint64_t{model.drop_kv});
    hash.add(std::uint64_t{model.prefix_cache});
    hash.add(static_cast<std::uint64_t>(model.prefix_fetch));
    hash.add(std::uint64_t{model.prefix_fetch_min_tokens});
    hash.add(static_cast<std::uint64_t>(model.compute));
    hash.add(static_cast<std::uint64_t>(model.device.gpu));
    hash.add(static_cast<std::uint64_t>(model.device.number.value_or(UINT32_MAX)));
    hash.add(static_cast<std::uint64_t>(model.dummy_weights));
    hash.add(static_cast<std::uint64_t>(model.one_kernel ? 1 + *model.one_kernel : 0));
    hash.add(model.param_num_billion);
    hash.add(std::uint64_t{model.max_batch_rows});
    hash.add(std::uint64_t{model.prefill_chunk_tokens});
    hash.add(std::uint64_t{model.threads});
    hash.add(model.kv_cache_tokens);
    hash.add(model.kv_cache_mem_fraction);
  }
  hash.add(config.method.name);
  hash.add(std::uint64_t{config.method.router.empty() ? 0u : 1u});
  hash.add(std::uint64_t{config.method.library.empty() ? 0u : 1u});
  add_parameters(config.method.parameters, hash);
  hash.add(std::uint64_t{config.trace.directory.empty() ? 0u : 1u});
  return hash.value();
}

} // namespace tokenrouter
