#include "runtime/transport/bootstrap.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include <mpi.h>
#include <unistd.h>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

/// Ends the process when it is not destroyed in time.
class watchdog {
 public:
  watchdog(std::uint32_t deadline_ms, int exit_code)
      : thread_([this, deadline_ms, exit_code] {
          std::unique_lock lock(mutex_);
          if (over_.wait_for(lock, std::chrono::milliseconds(deadline_ms),
                             [this] { return done_; }))
            return;
          std::fprintf(stderr, "tokenrouter: MPI did not end within %u ms, leaving without it\n",
                       static_cast<unsigned>(deadline_ms));
          std::fflush(nullptr);
          _exit(exit_code);
        }) {}

  ~watchdog() {
    {
      const std::lock_guard guard(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

std::string this_host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0)
    return "unknown";
  return name.data();
}

error mpi_error(const char* what, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {errc::internal, std::string(what) + " failed: " +
                              std::string(text.data(), static_cast<std::size_t>(length))};
}

} // namespace

result<std::unique_ptr<bootstrap>> bootstrap::start(const launch_environment& environment) {
  std::unique_ptr<bootstrap> self(new bootstrap);
  self->host_ = this_host();
  if (environment.kind != launcher::none)
    if (auto started = self->start_mpi(environment); !started)
      return tl::unexpected(started.error());
  return self;
}

result<void> bootstrap::start_mpi(const launch_environment& environment) {
  if (environment.kind == launcher::slurm)
    return fail(errc::unavailable, "srun started " + std::to_string(environment.ranks) +
                                       " tasks that MPI can't connect; use srun --mpi=pmix");
  // MPI carries addresses only, and must not open the network library that carries our frames.
  setenv("OMPI_MCA_pml", "ob1", 0);
  setenv("OMPI_MCA_osc", "^ucx", 0);
  if (int started = 0; MPI_Initialized(&started) == MPI_SUCCESS && started != 0)
    return fail(errc::unavailable, "MPI was started before in this process; a job starts and ends "
                                   "it, once a process");
  int provided = MPI_THREAD_SINGLE;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
      code != MPI_SUCCESS)
    return fail(errc::unavailable, "MPI did not start (code " + std::to_string(code) + ")");
  uses_mpi_ = true;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, ranks = 1, local_rank = 0, ranks_on_host = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm host = MPI_COMM_NULL;
  if (const int code =
          MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
      code != MPI_SUCCESS)
    return tl::unexpected(mpi_error("finding the ranks of this host", code));
  MPI_Comm_rank(host, &local_rank);
  MPI_Comm_size(host, &ranks_on_host);
  MPI_Comm_free(&host);
  rank_ = {static_cast<std::uint32_t>(rank)};
  ranks_ = static_cast<std::uint32_t>(ranks);
  local_rank_ = static_cast<std::uint32_t>(local_rank);
  ranks_on_host_ = static_cast<std::uint32_t>(ranks_on_host);
  if (provided < MPI_THREAD_FUNNELED)
    return fail(errc::unavailable, "this MPI library does not allow threads beside the one that "
                                   "calls it (MPI_THREAD_FUNNELED); use one built with threads");
  if (environment.ranks > 0 && environment.ranks != ranks_)
    return fail(errc::unavailable,
                "the launcher started " + std::to_string(environment.ranks) +
                    " processes but MPI sees " + std::to_string(ranks_) +
                    "; start the program with the launcher of the MPI library it is linked to");
  return {};
}

bootstrap::~bootstrap() {
  // Leaving MPI open here can only be the way out after an error: MPI's own exit handler would
  // end the other ranks in any case.
  if (uses_mpi_ && !finalised_)
    finalise(2000, EXIT_FAILURE);
}

result<std::vector<std::vector<std::byte>>> bootstrap::allgather(std::span<const std::byte> mine) {
  if (!uses_mpi_)
    return std::vector<std::vector<std::byte>>(1, {mine.begin(), mine.end()});
  check(!finalised_, "allgather after finalise");
  const std::uint64_t own_bytes = mine.size();
  std::vector<std::uint64_t> bytes_of(ranks_);
  if (const int code = MPI_Allgather(&own_bytes, 1, MPI_UINT64_T, bytes_of.data(), 1, MPI_UINT64_T,
                                     MPI_COMM_WORLD);
      code != MPI_SUCCESS)
    return tl::unexpected(mpi_error("exchanging sizes", code));
  std::vector<int> counts, offsets;
  std::uint64_t total_bytes = 0;
  for (const auto bytes : bytes_of) {
    if (total_bytes + bytes > std::numeric_limits<int>::max())
      return fail(errc::capacity, "ranks exchange 2 GiB or more at the start");
    offsets.push_back(static_cast<int>(total_bytes));
    counts.push_back(static_cast<int>(bytes));
    total_bytes += bytes;
  }
  std::vector<std::byte> all(total_bytes);
  if (const int code =
          MPI_Allgatherv(mine.data(), static_cast<int>(own_bytes), MPI_BYTE, all.data(),
                         counts.data(), offsets.data(), MPI_BYTE, MPI_COMM_WORLD);
      code != MPI_SUCCESS)
    return tl::unexpected(mpi_error("exchanging addresses", code));
  std::vector<std::vector<std::byte>> by_rank;
  for (std::size_t i = 0; i < ranks_; ++i) {
    const auto part = std::span(all).subspan(static_cast<std::size_t>(offsets[i]),
                                             static_cast<std::size_t>(counts[i]));
    by_rank.emplace_back(part.begin(), part.end());
  }
  return by_rank;
}

void bootstrap::finalise(std::uint32_t deadline_ms, int exit_code) {
  if (std::exchange(finalised_, true) || !uses_mpi_)
    return;
  const watchdog guard(deadline_ms, exit_code);
  MPI_Finalize();
}

} // namespace tokenrouter
