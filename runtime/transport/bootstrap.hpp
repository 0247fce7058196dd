#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/transport/launch_environment.hpp"

namespace tokenrouter {

/// Who and where this process is in the job. MPI is used for this and to exchange addresses at the
/// start, and then not before `finalise`; a process that was started alone never calls MPI. All
/// calls come from the thread that made it.
class bootstrap {
 public:
  /// Collective over the job. Errors: unavailable (MPI lacks thread support, or the launcher
  /// started several tasks that MPI does not see as one job). At most once in a process.
  static result<std::unique_ptr<bootstrap>> start(const launch_environment& environment);

  /// Finalises within 2 s if nobody did.
  ~bootstrap();

  rank_id rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  const std::string& host() const { return host_; }
  std::uint32_t ranks_on_host() const { return ranks_on_host_; }
  std::uint32_t local_rank() const { return local_rank_; }
  bool uses_mpi() const { return uses_mpi_; }

  /// Collective: every rank's bytes, by rank. Errors: capacity (2 GiB or more together), internal.
  result<std::vector<std::vector<std::byte>>> allgather(std::span<const std::byte> mine);

  /// Ends the use of MPI; collective, but never waits longer than `deadline_ms`: MPI_Finalize
  /// hangs when a rank has died, and then the process ends at once with `exit_code`.
  void finalise(std::uint32_t deadline_ms, int exit_code);

 private:
  bootstrap() = default;
  result<void> start_mpi(const launch_environment& environment);

  rank_id rank_{0};
  std::uint32_t ranks_ = 1;
  std::string host_;
  std::uint32_t ranks_on_host_ = 1;
  std::uint32_t local_rank_ = 0;
  bool uses_mpi_ = false;
  bool finalised_ = false;
};

} // namespace tokenrouter
