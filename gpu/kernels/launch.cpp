#include "gpu/kernels/launch.hpp"

#include <atomic>

namespace tokenrouter::gpu {
namespace {

std::atomic<bool> overlap{true};

} // namespace

void overlap_kernels(bool on) {
  overlap.store(on, std::memory_order_relaxed);
}

bool kernels_overlap() {
  return overlap.load(std::memory_order_relaxed);
}

} // namespace tokenrouter::gpu
