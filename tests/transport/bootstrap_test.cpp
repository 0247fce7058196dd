#include <boost/test/unit_test.hpp>

#include <map>
#include <string>

#include "runtime/transport/bootstrap.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(the_launcher_is_told_from_the_environment) {
  struct row {
    const char* what;
    std::map<std::string, std::string> variables;
    launcher kind;
    std::uint32_t ranks;
  };
  const std::vector<row> rows{
      {"nothing set", {}, launcher::none, 1},
      {"mpirun", {{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}}, launcher::open_mpi, 4},
      {"mpirun -np 1", {{"OMPI_COMM_WORLD_SIZE", "1"}}, launcher::open_mpi, 1},
      {"mpirun inside a Slurm step",
       {{"OMPI_COMM_WORLD_SIZE", "8"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       launcher::open_mpi,
       8},
      {"srun --mpi=pmix",
       {{"PMIX_RANK", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       launcher::pmix,
       2},
      {"mpiexec of MPICH", {{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}, launcher::pmi, 3},
      {"srun without MPI",
       {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       launcher::slurm,
       2},
      {"one task of srun",
       {{"SLURM_STEP_ID", "1"}, {"SLURM_STEP_NUM_TASKS", "1"}},
       launcher::none,
       1},
      {"inside a batch script", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}}, launcher::none, 1},
  };
  for (const auto& row : rows)
    BOOST_TEST_CONTEXT(row.what) {
      const auto found = detect_launch_environment([&](const char* name) -> const char* {
        const auto it = row.variables.find(name);
        return it == row.variables.end() ? nullptr : it->second.c_str();
      });
      BOOST_TEST((found.kind == row.kind));
      BOOST_TEST(found.ranks == row.ranks);
    }
}

BOOST_AUTO_TEST_CASE(a_process_on_its_own_needs_no_mpi) {
  auto job = bootstrap::start({launcher::none, 1});
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST(!(*job)->uses_mpi());
  BOOST_TEST((*job)->rank().value == 0u);
  BOOST_TEST((*job)->ranks() == 1u);
  BOOST_TEST((*job)->ranks_on_host() == 1u);
  BOOST_TEST(!(*job)->host().empty());
  const std::vector<std::byte> mine(5, std::byte{7});
  const auto all = (*job)->allgather(mine);
  BOOST_REQUIRE(all.has_value());
  BOOST_REQUIRE(all->size() == 1u);
  BOOST_TEST((all->front() == mine));
  (*job)->finalise(1000, 1);
}

BOOST_AUTO_TEST_CASE(tasks_that_mpi_cannot_connect_are_refused_with_advice) {
  const auto job = bootstrap::start({launcher::slurm, 2});
  BOOST_REQUIRE(!job.has_value());
  BOOST_TEST((job.error().code == errc::unavailable));
  BOOST_TEST(job.error().message.find("srun --mpi=pmix") != std::string::npos);
}
