#pragma once

#include <string>
#include <vector>

#include "launch/memory_shares.hpp"
#include "launch/rank_card.hpp"
#include "runtime/config/config.hpp"

namespace tokenrouter {

/// The job as it starts: a line a replica (rank, host, cores, device, model, KV tokens, how many
/// requests of the full context it holds at once), then the ways between the ranks: each pair's if
/// there are few, else one line a carrier. Requires one card a rank. Pure.
std::string start_table(const std::vector<rank_card>& cards, const job_plan& plan,
                        const memory_shares& shares);

/// What makes a job slow and is seldom meant, a line each, saying what to do: hosts with more
/// threads than cores, ranks bound to one core, ranks of one host that talk over a network. Pure.
std::vector<std::string> start_warnings(const std::vector<rank_card>& cards);

} // namespace tokenrouter
