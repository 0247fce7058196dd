#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/commands.hpp"
#include "launch/job.hpp"
#include "launch/memory_shares.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::ordered_json;

constexpr double bytes_per_mib = 1u << 20, bytes_per_gib = 1u << 30;

struct plan_memory_options {
  job_options job;
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_host = 0;
  double usable_fraction = host_layout{}.usable_fraction;
  double memory_gib = 0;           ///< 0 = what this host has free
  std::uint32_t gpus_per_host = 0; ///< 0 = those that this host has
  double gpu_memory_gib = 80;      ///< free, of each
  double reserved_gib = 0;
  std::uint64_t context_tokens = 0; ///< 0 = the longest that every model takes
  bool as_json = false;
};

double mib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / bytes_per_mib;
}

std::string to_text(const memory_shares& shares, std::uint64_t context_tokens) {
  std::string out =
      fmt::format("{:<10} {:<20} {:>11} {:>12} {:>10} {:>11} {:>8} {:>9}\n", "device", "model",
                  "weights MiB", "KV B/token", "KV tokens", "KV MiB", "KV share", "requests");
  for (std::size_t d = 0; d < shares.devices.size(); ++d)
    for (std::size_t m = 0; m < shares.models.size(); ++m) {
      const auto& model = shares.models[m];
      const auto& memory = shares.plan.models[m];
      for (const auto& shard : memory.shards)
        if (shard.device == d)
          out += fmt::format("{:<10} {:<20} {:>11.1f} {:>12} {:>10} {:>11.1f} {:>7.2f}% {:>9}\n",
                             shares.devices[d].name, model.name, mib(shard.weight_bytes),
                             model.kv_bytes_per_block / limits::block_tokens, memory.kv_tokens,
                             mib(shard.kv_bytes), 100 * shard.kv_fraction,
                             concurrent_requests(model, memory, context_tokens));
    }
  for (std::size_t d = 0; d < shares.devices.size(); ++d) {
    const auto& memory = shares.plan.devices[d];
    out += fmt::format("{}: {:.1f} MiB free, {:.1f} MiB of them to use: weights {:.1f}, KV {:.1f}, "
                       "reserved {:.1f}, unused {:.1f}\n",
                       shares.devices[d].name, mib(shares.devices[d].memory_bytes),
                       mib(memory.usable_bytes), mib(memory.weight_bytes), mib(memory.kv_bytes),
                       mib(memory.reserved_bytes), mib(memory.unused_bytes));
  }
  return out + fmt::format("every model holds {} requests of {} tokens at once; KV share is of the "
                           "device's free memory\n",
                           concurrent_requests(shares.models, shares.plan, context_tokens),
                           context_tokens);
}

std::string to_json(const memory_shares& shares, std::uint64_t context_tokens) {
  json out;
  out["context_tokens"] = context_tokens;
  out["concurrent_requests"] = concurrent_requests(shares.models, shares.plan, context_tokens);
  for (std::size_t d = 0; d < shares.devices.size(); ++d) {
    const auto& memory = shares.plan.devices[d];
    out["devices"].push_back({{"name", shares.devices[d].name},
                              {"memory_bytes", shares.devices[d].memory_bytes},
                              {"usable_bytes", memory.usable_bytes},
                              {"reserved_bytes", memory.reserved_bytes},
                              {"weight_bytes", memory.weight_bytes},
                              {"kv_bytes", memory.kv_bytes},
                              {"unused_bytes", memory.unused_bytes}});
  }
  for (std::size_t m = 0; m < shares.models.size(); ++m) {
    const auto& model = shares.models[m];
    const auto& memory = shares.plan.models[m];
    json one{{"name", model.name},
             {"weight_bytes", model.weight_bytes},
             {"kv_bytes_per_token", model.kv_bytes_per_block / limits::block_tokens},
             {"kv_tokens", memory.kv_tokens},
             {"concurrent_requests", concurrent_requests(model, memory, context_tokens)}};
    for (const auto& shard : memory.shards)
      one["shards"].push_back({{"device", shares.devices[shard.device].name},
                               {"weight_bytes", shard.weight_bytes},
                               {"kv_bytes", shard.kv_bytes},
                               {"kv_fraction", shard.kv_fraction}});
    out["models"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

std::uint64_t bytes_of(double gib) {
  return static_cast<std::uint64_t>(gib * bytes_per_gib);
}

/// A host as the options describe it; what they leave out is this host's.
result<job_host> host_of(const plan_memory_options& options, const job_config& config) {
  job_host host{"", available_memory_bytes(), {}};
  if (options.gpus_per_host > 0) {
    host.gpu_bytes.assign(options.gpus_per_host, bytes_of(options.gpu_memory_gib));
  } else {
    auto here = host_here(config);
    if (!here)
      return here;
    host = std::move(*here);
  }
  if (options.memory_gib > 0)
    host.memory_bytes = bytes_of(options.memory_gib);
  return host;
}

result<std::string> describe(const plan_memory_options& options, const job_config& config) {
  const auto job = plan_job(config, options.ranks);
  if (!job)
    return tl::unexpected(job.error());
  const auto host = host_of(options, config);
  if (!host)
    return tl::unexpected(host.error());
  host_layout layout = equal_hosts(options.ranks, options.ranks_per_host, *host);
  layout.usable_fraction = options.usable_fraction;
  layout.reserved_bytes = static_cast<std::uint64_t>(options.reserved_gib * bytes_per_gib);
  const auto shares = share_memory(config, *job, layout);
  if (!shares)
    return tl::unexpected(shares.error());
  const std::uint64_t context_tokens =
      options.context_tokens > 0 ? options.context_tokens : job->context_tokens_max;
  return options.as_json ? to_json(*shares, context_tokens) : to_text(*shares, context_tokens);
}

int run_plan_memory(const plan_memory_options& options) {
  auto loaded = load_config(options.job.config_file, options.job.overrides);
  if (loaded.faults.empty())
    loaded.faults = validate_ranks(loaded.config, options.ranks);
  if (!loaded.faults.empty()) {
    std::fprintf(stderr, "tokenrouter: %s\n", fault_lines(loaded.faults).c_str());
    return 2;
  }
  const auto text = describe(options, loaded.config);
  if (!text) {
    std::fprintf(stderr, "tokenrouter: %s\n", text.error().message.c_str());
    return 2;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}

} // namespace

void add_plan_memory(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<plan_memory_options>();
  auto* command = program.add_subcommand(
      "plan-memory", "Share hosts' memory among KV pools so that all models hold as many tokens");
  command->footer("kv_cache.tokens and kv_cache.mem_fraction of the config come first. Without "
                  "kv_cache.tokens no model gets more than max_batch_rows full contexts need. "
                  "Starts nothing.");
  command->add_option("--config", options->job.config_file, "The job's YAML file")->required();
  command->add_option("--set", options->job.overrides, "Override a key of the config: key=value");
  command->add_option("--ranks", options->ranks, "Ranks the job would have")
      ->check(CLI::Range(1u, limits::ranks_max))
      ->capture_default_str();
  command
      ->add_option("--ranks-per-host", options->ranks_per_host,
                   "Ranks on each host, in order; 0: all on one")
      ->check(CLI::Range(0u, limits::ranks_max))
      ->capture_default_str();
  command
      ->add_option("--memory-gib", options->memory_gib,
                   "Free memory of each host; left out: what this host has free now")
      ->check(CLI::Range(1e-6, 1e6));
  command
      ->add_option("--gpus-per-host", options->gpus_per_host,
                   "GPUs of each host; left out: those that this host has")
      ->check(CLI::Range(1u, 64u));
  command->add_option("--gpu-memory-gib", options->gpu_memory_gib, "Free memory of each such GPU")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  command
      ->add_option("--usable-fraction", options->usable_fraction,
                   "Of the free memory, what the job may use")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  command
      ->add_option("--reserved-gib", options->reserved_gib,
                   "Of the usable memory of each host, what is kept from weights and KV")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--context-tokens", options->context_tokens,
                   "Length of the requests to count; left out: the longest every model takes")
      ->check(CLI::Range(1u, limits::context_tokens_max));
  command->add_flag("--json", options->as_json, "Print JSON, sizes in bytes");
  command->callback([options, &exit_code] { exit_code = run_plan_memory(*options); });
}

} // namespace tokenrouter
