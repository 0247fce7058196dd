#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tokenrouter {

/// How this process was started, as far as its environment tells.
enum class launcher : std::uint8_t {
  none,     ///< by itself: one rank, MPI is not needed
  open_mpi, ///< Open MPI's mpirun
  pmix,     ///< a launcher that speaks PMIx, e.g. srun --mpi=pmix
  pmi,      ///< a launcher that speaks PMI, e.g. MPICH's mpiexec
  slurm,    ///< srun, several tasks, without anything that MPI could use
};

struct launch_environment {
  launcher kind = launcher::none;
  std::uint32_t ranks = 0; ///< as announced by the launcher; 0 = not said
};

/// Looks at the variables through `get` (null: not set). Pure.
launch_environment detect_launch_environment(const std::function<const char*(const char*)>& get);

/// Of this process.
launch_environment detect_launch_environment();

} // namespace tokenrouter
