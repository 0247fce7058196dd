// How long a handoff takes from one rank to another of the same host, against UCX alone and against
// pickled objects over ZeroMQ. Ping-pong: both ranks are busy with handoffs; paced: they spin and
// one handoff comes every 200 us. Run it from the root of the repository, on an idle machine:
//   mpirun -np 2 build/release/bench_handoff [--without-zmq]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/core/log.hpp"
#include "runtime/reactor/affinity.hpp"
#include "tests/bench/handoff/actor_path.hpp"
#include "tests/bench/handoff/raw_ucx.hpp"
#include "tests/bench/handoff/zmq_pickle.hpp"

using namespace tokenrouter;
using namespace tokenrouter::bench;

namespace {

void print(const char* what, const summary& x) {
  std::printf("%-34s p50_us %8.2f p99_us %8.2f", what, x.p50_us, x.p99_us);
  if (x.messages_per_s > 0)
    std::printf(" messages_per_s %9.0f", x.messages_per_s);
  std::printf("\n");
}

/// Pins this rank and returns the cores of both ranks' control threads.
std::vector<int> take_cores(bootstrap& job) {
  const auto mine = allowed_cores();
  const auto all = job.allgather(std::as_bytes(std::span(mine))).value();
  std::vector<rank_threads> host;
  for (const auto& bytes : all) {
    std::vector<int> cores(bytes.size() / sizeof(int));
    std::memcpy(cores.data(), bytes.data(), bytes.size());
    host.push_back({std::move(cores), 0});
  }
  std::vector<int> used;
  for (std::size_t rank = 0; rank < host.size(); ++rank)
    used.push_back(plan_threads(host, rank).control_core);
  const auto plan = plan_threads(host, job.local_rank());
  if (plan.control_core >= 0)
    static_cast<void>(pin_this_thread(plan.control_core));
  if (!plan.may_spin && job.rank().value == 0)
    std::printf("two ranks share a core: the figures are waiting times for the core\n");
  return used;
}

int run(bootstrap& job, bool with_zmq) {
  if (job.ranks() != 2 || job.ranks_on_host() != 2) {
    std::fprintf(stderr, "start it as two ranks on one host: mpirun -np 2 bench_handoff\n");
    return EXIT_FAILURE;
  }
  const auto cores = take_cores(job);
  const auto raw = measure_raw_ucx(job);
  result<zmq_pickle_result> zmq = zmq_pickle_result{};
  const auto actors = measure_actor_path(job, [&] {
    if (with_zmq)
      zmq = measure_zmq_pickle(cores);
  });
  if (job.rank().value != 0)
    return EXIT_SUCCESS;
  print("ucx alone, paced", raw.paced);
  print("ucx alone, ping-pong", raw.ping_pong);
  std::printf("handoffs are carried by %s\n", actors.carrier.c_str());
  print("handoff, paced", actors.paced);
  print("handoff, ping-pong", actors.ping_pong);
  print("handoff, paced, receiver sleeps", actors.paced_sleeping);
  std::printf("%-34s messages_per_s %9.0f\n", "handoff, flood", actors.flood.messages_per_s);
  if (!with_zmq)
    return EXIT_SUCCESS;
  if (!zmq) {
    std::fprintf(stderr, "%s\n", zmq.error().message.c_str());
    return EXIT_FAILURE;
  }
  print("zmq + pickle, paced, sleeping", zmq->paced_blocking);
  print("zmq + pickle, paced, polling", zmq->paced_polling);
  print("zmq + pickle, ping-pong, polling", zmq->ping_pong);
  std::printf("%-34s messages_per_s %9.0f\n", "zmq + pickle, flood", zmq->flood.messages_per_s);
  // Ours with both ranks busy, against whatever ZeroMQ does best.
  const auto zmq_p50_us =
      std::min({zmq->paced_blocking.p50_us, zmq->paced_polling.p50_us, zmq->ping_pong.p50_us});
  std::printf("handoff p50_us %.2f p99_us %.2f zmq_pickle_p50_us %.2f ratio %.1f\n",
              actors.ping_pong.p50_us, actors.ping_pong.p99_us, zmq_p50_us,
              zmq_p50_us / actors.ping_pong.p50_us);
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
  const int code = run(**job, argc < 2 || std::strcmp(argv[1], "--without-zmq") != 0);
  (*job)->finalise(5000, EXIT_FAILURE);
  return code;
}
