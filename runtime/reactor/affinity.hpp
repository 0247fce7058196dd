#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// Cores the calling thread may run on, ascending. Ask before any pinning: a pinned thread, and
/// every thread it starts, sees its own core only.
std::vector<int> allowed_cores();

/// Errors: invalid_argument (the core does not exist or is not allowed).
result<void> pin_this_thread(int core);

/// The same for a set of cores, which threads that this one starts inherit. Requires one at least.
result<void> pin_this_thread(std::span<const int> cores);

/// What one rank of a host brings to the planning.
struct rank_threads {
  std::vector<int> allowed_cores; ///< what the launcher left it
  unsigned model_threads = 0;     ///< threads of its model parts, all together
};

/// Where the threads of one rank run.
struct thread_layout {
  int control_core = -1;        ///< -1: don't pin
  std::vector<int> model_cores; ///< one for each model thread
  bool may_spin = false;        ///< every thread of all ranks of the host has a core of its own

  friend bool operator==(const thread_layout&, const thread_layout&) = default;
};

/// Plans the threads of one rank; every rank of the host computes the same plan from the same
/// `host` (all its ranks in order of local rank). With enough cores each thread gets its own and
/// may spin; otherwise the model threads are spread over the cores first, each control thread is
/// put beside its model and not on it where possible, and nothing may spin. A rank only gets cores
/// that it is allowed to use. Requires local_rank < host.size(). Pure.
thread_layout plan_threads(std::span<const rank_threads> host, std::size_t local_rank);

/// The same for ranks that share one set of cores and have equally many model threads.
thread_layout plan_threads(std::span<const int> allowed_cores, unsigned ranks_on_host,
                           unsigned local_rank, unsigned model_threads);

} // namespace tokenrouter
