#pragma once

#include <atomic>

namespace tokenrouter {

/// Tells the core that this thread spins, so that a sibling hardware thread gets its share.
inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

} // namespace tokenrouter
