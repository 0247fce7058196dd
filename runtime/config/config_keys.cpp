#include "runtime/config/config_keys.hpp"

#include <algorithm>
#include <array>

namespace tokenrouter {

namespace {

constexpr std::string_view keys[] = {
    "system.entry_model",
    "system.method",
    "system.on_peer_loss",
    "system.heartbeat_ms",
    "system.peer_timeout_ms",
    "system.delayed_batching_timeout_ms",
    "system.log_level",
    "models.NAME.path",
    "models.NAME.scheduler",
    "models.NAME.ranks",
    "models.NAME.replicas",
    "models.NAME.delayed_batching_threshold",
    "models.NAME.device",
    "models.NAME.load_format",
    "models.NAME.one_kernel",
    "models.NAME.tp_size",
    "models.NAME.param_num_billion",
    "models.NAME.compute_dtype",
    "models.NAME.prefill_chunk_tokens",
    "models.NAME.max_batch_rows",
    "models.NAME.threads",
    "models.NAME.kv_at_handoff",
    "models.NAME.prefix_cache",
    "models.NAME.prefix_fetch",
    "models.NAME.prefix_fetch_min_tokens",
    "models.NAME.kv_cache.tokens",
    "models.NAME.kv_cache.mem_fraction",
    "method.router",
    "method.threshold",
    "method.thresholds",
    "method.weights",
    "method.switching_strategy",
    "method.aleatoric_threshold",
    "method.epistemic_threshold",
    "method.entropy_threshold",
    "method.momentum_decay_fraction",
    "method.quick_to_reference_threshold",
    "method.reference_to_quick_threshold",
    "method.window_tokens",
    "method.reference_share",
    "method.head_form",
    "method.schedule",
    "method.schedule_start_threshold",
    "method.warmup_tokens",
    "method.combine",
    "method.defer_token",
    "method.entropy_unit",
    "method.on_return",
    "method.answer_by",
    "method.thinking",
    "method.step_tokens_max",
    "method.thinking_tokens_max",
    "method.first_small_steps_count",
    "method.random_mode",
    "method.small_to_large_share",
    "method.large_to_small_share",
    "method.score_source",
    "method.score_tail_tokens",
    "method.head_kind",
    "method.draft_tokens",
    "method.library",
    "method.options",
    "trace.directory",
    "serve.host",
    "serve.port",
    "serve.port_file",
    "serve.model_name",
    "serve.api_key_file",
    "serve.threads",
    "serve.requests_max",
    "serve.connections_max",
    "serve.header_bytes_max",
    "serve.body_bytes_max",
    "serve.unsent_bytes_max",
    "serve.read_timeout_ms",
    "serve.idle_timeout_ms",
    "serve.write_timeout_ms",
    "serve.drain_timeout_ms",
    "serve.step_timeout_ms",
    "compute_dtype",
    "prefill_chunk_tokens",
    "max_batch_rows",
    "threads",
    "kv_at_handoff",
    "prefix_cache",
    "prefix_fetch",
    "prefix_fetch_min_tokens",
    "kv_cache.tokens",
    "kv_cache.mem_fraction",
};

constexpr std::array<std::string_view, 9> job_wide = {
    "compute_dtype", "prefill_chunk_tokens", "max_batch_rows",          "threads", "kv_at_handoff",
    "prefix_cache",  "prefix_fetch",         "prefix_fetch_min_tokens", "kv_cache"};

std::string_view last_name(std::string_view path) {
  return path.substr(path.rfind('.') + 1); // npos + 1 is 0
}

} // namespace

std::span<const std::string_view> known_config_keys() {
  return keys;
}

std::span<const std::string_view> job_wide_names() {
  return job_wide;
}

std::vector<std::string_view> config_names_under(std::string_view parent) {
  std::vector<std::string_view> out;
  for (std::string_view key : keys) {
    if (!parent.empty()) {
      if (!key.starts_with(parent) || key.substr(parent.size(), 1) != ".")
        continue;
      key.remove_prefix(parent.size() + 1);
    }
    const std::string_view name = key.substr(0, key.find('.'));
    if (std::ranges::find(out, name) == out.end())
      out.push_back(name);
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::string listed(std::span<const std::string_view> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0)
      out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

std::string advice_on_key(std::string_view parent, std::string_view unknown) {
  const auto here = config_names_under(parent);
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(2, unknown.size() / 3) + 1;
  for (const std::string_view name : here)
    if (const std::size_t distance = edit_distance(unknown, name); distance < least) {
      least = distance;
      nearest = name;
    }
  if (!nearest.empty())
    return "did you mean '" + std::string(nearest) + "'?";
  for (const std::string_view key : keys)
    if (last_name(key) == unknown)
      return "did you mean '" + std::string(key) + "'?";
  return "known here are " + listed(here);
}

} // namespace tokenrouter
