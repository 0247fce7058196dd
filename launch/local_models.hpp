#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "launch/memory_shares.hpp"
#include "launch/plan.hpp"
#include "launch/wire_up.hpp"
#include "runtime/config/config.hpp"

namespace tokenrouter {

/// Adds to `plan`, whose `self` is set, where all shards of the job are, and what this rank runs of
/// them. `threads`: CPU threads of a model here; `cores`: one for each of them, in the order of the
/// shards, or fewer. `job` must outlive what is made of the plan.
void plan_models(const job_config& config, const job_plan& job, const memory_shares& shares,
                 const std::function<std::uint32_t(model_id)>& threads,
                 const std::vector<int>& cores, rank_plan& plan);

} // namespace tokenrouter
