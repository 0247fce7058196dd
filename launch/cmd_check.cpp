#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "gpu/devices.hpp"
#include "launch/commands.hpp"
#include "launch/job.hpp"
#include "launch/memory_shares.hpp"

namespace tokenrouter {

namespace {

struct check_options {
  job_options job;
  std::uint32_t ranks = 1;
};

std::string role_text(const job_config& config, const job_plan& plan, std::size_t model) {
  return config.models[model].role + (plan.entry.value == model ? ", entry" : "");
}

/// The rank → model map with weights and KV pool of each; the error is for the user.
result<std::string> describe(const job_config& config, const job_plan& plan, std::uint32_t ranks) {
  const auto host = host_here(config);
  if (!host)
    return tl::unexpected(host.error());
  const auto shares = share_memory(config, plan, equal_hosts(ranks, 0, *host));
  if (!shares)
    return tl::unexpected(shares.error());
  std::string out =
      fmt::format("{:<5} {:<20} {:<7} {:<18} {:>11} {:>11} {:>10} {:>9}\n", "rank", "model",
                  "device", "scheduler", "weights MiB", "KV MiB", "KV tokens", "requests");
  for (std::uint32_t r = 0; r < ranks; ++r) {
    bool any = false;
    for (const auto& place : shares->shards) {
      if (place.rank != rank_id{r})
        continue;
      any = true;
      const auto& memory = shares->plan.models[place.replica];
      const auto index = place.shard.replica.model.value;
      const auto& model = plan.models[index];
      out += fmt::format(
          "{:<5} {:<20} {:<7} {:<18} {:>11.1f} {:>11.1f} {:>10} {:>9}\n", r, shares->name_of(place),
          place.device(), role_text(config, plan, index),
          static_cast<double>(model.weight_bytes / model.shards) / 1048576.0,
          static_cast<double>(memory.kv_blocks * model.kv_bytes_per_block / model.shards) /
              1048576.0,
          memory.kv_tokens, memory.kv_tokens / model.context_tokens_max);
    }
    if (!any)
      out += fmt::format("{:<5} (no model)\n", r);
  }
  out +=
      fmt::format("context {} tokens, vocabulary {} tokens; 'requests' is how many full contexts "
                  "a pool holds; KV is reckoned for all ranks on one host like this\n",
                  plan.context_tokens_max, plan.vocab_tokens);
  return out;
}

/// GPUs of this host.
std::string describe_gpus() {
  const auto gpus = list_gpus();
  if (!gpus)
    return gpus.error().message + "\n";
  std::string out;
  for (std::size_t i = 0; i < gpus->size(); ++i)
    out += fmt::format("cuda:{} {}, {:.0f} GiB, sm_{}{}{}, {:.0f} GiB free\n", i, (*gpus)[i].name,
                       static_cast<double>((*gpus)[i].memory_bytes) / (1u << 30), (*gpus)[i].major,
                       (*gpus)[i].minor,
                       (*gpus)[i].major < gpu_major_min ? " (too old for models)" : "",
                       static_cast<double>((*gpus)[i].free_bytes) / (1u << 30));
  return out;
}

int run_check(const check_options& options) {
  auto loaded = load_config(options.job.config_file, options.job.overrides);
  if (loaded.faults.empty())
    loaded.faults = validate_ranks(loaded.config, options.ranks);
  if (!loaded.faults.empty()) {
    std::fprintf(stderr, "tokenrouter: %s\n", fault_lines(loaded.faults).c_str());
    return 2;
  }
  const auto plan = plan_job(loaded.config, options.ranks);
  const auto text = plan ? describe(loaded.config, *plan, options.ranks)
                         : result<std::string>(tl::unexpected(plan.error()));
  if (!text) {
    std::fprintf(stderr, "tokenrouter: %s\n", text.error().message.c_str());
    return 2;
  }
  std::fputs(text->c_str(), stdout);
  std::fputs(describe_gpus().c_str(), stdout);
  return 0;
}

} // namespace

void add_check(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<check_options>();
  auto* command = program.add_subcommand(
      "check", "Print which rank hosts which model and the KV budget, or every fault of a config");
  command->add_option("--config", options->job.config_file, "The job's YAML file")->required();
  command->add_option("--set", options->job.overrides, "Override a key of the config: key=value");
  command->add_option("--ranks", options->ranks, "Ranks the job would have")
      ->check(CLI::Range(1u, limits::ranks_max))
      ->capture_default_str();
  command->callback([options, &exit_code] { exit_code = run_check(*options); });
}

} // namespace tokenrouter
