#pragma once

#include <cstdint>

#include "gpu/card_check.hpp"
#include "runtime/core/error.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/exec/model_config.hpp"

/// What a load asks before it takes any memory.
namespace tokenrouter::gpu {

struct taken_card {
  card facts;
  std::uint32_t processors;
  kernel_target target; ///< of the kernels that run on it
};

/// Makes the device this thread's current one. Error: unavailable (none of that number, or one that
/// this build's kernels do not run on).
result<taken_card> take_device(std::uint32_t device);

/// config.json of a model that our kernels can run. Errors: those of load_fitting_config; mismatch.
result<model_config> read_config(const load_options& options);

} // namespace tokenrouter::gpu
