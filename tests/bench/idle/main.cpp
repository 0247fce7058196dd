// How much of a core a job takes that has nothing to do. Run it on an idle machine:
//   mpirun -np 4 --oversubscribe build/release/bench_idle [seconds]
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <caf/actor_system.hpp>

#include "launch/wire_up.hpp"
#include "runtime/core/log.hpp"
#include "runtime/exec/scripted/scripted_backend.hpp"
#include "runtime/methods/plain/plain.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/transport/bootstrap.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"

using namespace tokenrouter;

namespace {

double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// A scripted model on every rank, with a thread of its own, and heartbeats between all ranks.
rank_plan plan_of(const bootstrap& job) {
  rank_plan plan;
  plan.self = job.rank();
  plan.ranks = job.ranks();
  plan.context_tokens_max = 256;
  plan.vocab_tokens = 64;
  plan.takes_clients = plan.self == rank_id{0};
  plan.model_spin_us = 1000;
  for (std::uint32_t r = 0; r < plan.ranks; ++r) {
    const model_id model{static_cast<std::uint16_t>(r)};
    plan.replicas.push_back({{model, 0}, {r}});
    plan.admission.push_back({"scripted", 256, 0});
  }
  plan.make_entry = [] { return make_entry({{"plain"}, {0}}, {}).value(); };
  local_replica replica;
  replica.facts = {{{static_cast<std::uint16_t>(plan.self.value)}, 0}, 1600, 64, 1};
  replica.kv_blocks = 100;
  replica.load = [](const shard_group&) -> result<std::unique_ptr<backend>> {
    return std::make_unique<scripted_backend>(scripted_options{});
  };
  replica.make_role = [] { return std::make_unique<plain_role>(); };
  plan.local.push_back(std::move(replica));
  return plan;
}

int run(bootstrap& job, double seconds) {
  auto wire = ucx_transport::create(job.rank());
  if (!wire)
    return EXIT_FAILURE;
  const auto addresses = job.allgather((*wire)->address()).value();
  for (std::uint32_t r = 0; r < job.ranks(); ++r)
    if (r != job.rank().value && !(*wire)->connect({r}, addresses[r]))
      return EXIT_FAILURE;
  reactor_config config;
  caf::actor_system system(config);
  auto& loop = reactor::of(system);
  loop.set_spin(spin_policy::while_in_flight);
  rank_actors actors(system, plan_of(job), wire->get());
  const auto start_us = loop.now_us() + 1'000'000; // start-up is over by then
  loop.run_until([&] { return actors.end() || loop.now_us() >= start_us; });
  const double before = cpu_seconds();
  const auto until_us = loop.now_us() + static_cast<std::uint64_t>(seconds * 1e6);
  loop.run_until([&] { return actors.end() || loop.now_us() >= until_us; });
  const double share = 100.0 * (cpu_seconds() - before) / seconds;
  std::vector<std::byte> mine(sizeof share);
  std::memcpy(mine.data(), &share, sizeof share);
  double sum = 0;
  const auto shares = job.allgather(mine).value();
  for (const auto& bytes : shares) {
    double one = 0;
    std::memcpy(&one, bytes.data(), sizeof one);
    sum += one;
  }
  if (job.rank().value == 0)
    std::printf("idle %u ranks: %.2f %% of a core in all\n", job.ranks(), sum);
  actors.shut_down();
  (*wire)->close(ucx_transport::close_deadline_ms);
  return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char** argv) {
  auto job = bootstrap::start(detect_launch_environment());
  if (!job) {
    std::fprintf(stderr, "%s\n", job.error().message.c_str());
    return EXIT_FAILURE;
  }
  init_log((*job)->rank(), "warn");
  const int code = (*job)->ranks() > 1 ? run(**job, argc > 1 ? std::atof(argv[1]) : 10.0)
                                       : (std::fprintf(stderr, "start it with mpirun -np 4\n"), 1);
  (*job)->finalise(3000, code);
  return code;
}
