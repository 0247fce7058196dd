#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/plan.hpp"
#include "launch/wire_up.hpp"
#include "runtime/config/load.hpp"

namespace tokenrouter {

/// What a subcommand wants run on all ranks.
struct job_options {
  std::filesystem::path config_file;
  std::vector<std::string> overrides;
};

/// A job as its first rank sees it once all actors stand; lives while it runs.
struct job_view {
  const job_config& config;
  const job_plan& plan;
  caf::actor_system& system;
  rank_actors& actors;
  std::vector<std::string> model_names;
  std::uint32_t ranks = 1;
};

/// Called on rank 0 before the loop runs: spawns the client. An error ends the job with its
/// message.
using client_starter = std::function<result<void>(job_view&)>;

/// What a client wants to hear of its job, on the thread that runs it; on rank 0 where nothing else
/// is said. Each but `start` may be null.
struct job_client {
  client_starter start;
  /// Every rank has its models.
  std::function<void(const std::vector<replica_facts>&)> on_ready;
  /// It goes on without a rank that was lost; the user was told.
  std::function<void(const job_loss&)> on_loss;
  /// The job is over, as intended or not; actors still stand. Called if `start` was.
  std::function<void(const job_end&)> on_end;
  /// Every rank: all ranks have met and the loop begins; `leads`: this is rank 0.
  std::function<void(bool leads)> on_joined;
  /// Gets what is printed otherwise: why the job can't start.
  std::function<void(const std::string&)> on_failure;
};

/// Runs a job on this rank from start to end: config, launcher, plan, transport, actors, loop,
/// shutdown. Prints what goes wrong, once for the job. Returns the exit code: 0, 1 (the job
/// failed), 2 (it could not start: config, files, launch).
int run_job(const job_options& options, const job_client& client);

/// All faults of a config, a line each, under a heading.
std::string fault_lines(const std::vector<config_fault>& faults);

} // namespace tokenrouter
