// One life of a rank's network: start, meet all peers, one frame each way, stop. A rank that is
// alone only starts and stops.
#include <cstdio>
#include <cstdlib>

#include "runtime/core/clock.hpp"
#include "runtime/transport/bootstrap.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"
#include "runtime/wire/frame_check.hpp"

using namespace tokenrouter;

namespace {

int run(bootstrap& job) {
  auto carrier = ucx_transport::create(job.rank());
  if (!carrier)
    return std::fprintf(stderr, "%s\n", carrier.error().message.c_str()), EXIT_FAILURE;
  const auto addresses = job.allgather((*carrier)->address());
  if (!addresses)
    return std::fprintf(stderr, "%s\n", addresses.error().message.c_str()), EXIT_FAILURE;
  std::uint32_t met = 0;
  (*carrier)->on_frame([&](rank_id, const frame_header&, std::span<const std::byte>) { ++met; });
  for (std::uint32_t r = 0; r < job.ranks(); ++r) {
    if (r == job.rank().value)
      continue;
    if (auto made = (*carrier)->connect({r}, (*addresses)[r]); !made)
      return std::fprintf(stderr, "%s\n", made.error().message.c_str()), EXIT_FAILURE;
    if (!(*carrier)->send({r}, make_frame({}, {}), {}))
      return EXIT_FAILURE;
  }
  const auto deadline_us = monotonic_us() + 10'000'000;
  while (met + 1 < job.ranks() && monotonic_us() < deadline_us)
    (*carrier)->progress();
  return (*carrier)->close(2000) && met + 1 == job.ranks() ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main() {
  auto job = bootstrap::start(detect_launch_environment());
  if (!job)
    return std::fprintf(stderr, "%s\n", job.error().message.c_str()), EXIT_FAILURE;
  const int code = run(**job);
  (*job)->finalise(5000, 3);
  return code;
}
