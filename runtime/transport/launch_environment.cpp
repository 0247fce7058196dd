#include "runtime/transport/launch_environment.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace tokenrouter {

namespace {

std::uint32_t number_of(const char* text) {
  std::uint32_t value = 0;
  if (text != nullptr)
    std::from_chars(text, text + std::strlen(text), value);
  return value;
}

} // namespace

launch_environment detect_launch_environment(const std::function<const char*(const char*)>& get) {
  if (const auto* size = get("OMPI_COMM_WORLD_SIZE"))
    return {launcher::open_mpi, number_of(size)};
  // A step's tasks, not the job's: a program in a batch script is alone, however large the job.
  const auto tasks = get("SLURM_STEP_ID") ? number_of(get("SLURM_STEP_NUM_TASKS")) : 0;
  if (get("PMIX_RANK"))
    return {launcher::pmix, tasks};
  if (get("PMI_RANK"))
    return {launcher::pmi, get("PMI_SIZE") ? number_of(get("PMI_SIZE")) : tasks};
  if (tasks > 1)
    return {launcher::slurm, tasks};
  return {launcher::none, 1};
}

launch_environment detect_launch_environment() {
  return detect_launch_environment([](const char* name) { return std::getenv(name); });
}

} // namespace tokenrouter
