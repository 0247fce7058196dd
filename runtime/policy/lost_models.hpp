#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/core/ids.hpp"
#include "runtime/policy/replica_choice.hpp"

/// What becomes of requests when replicas are lost. A model without any replica left is *out*.
namespace tokenrouter {

/// `replicas`: for each model, the index of the one that serves a request, or no_replica.
bool is_out(std::span<const std::uint16_t> replicas, model_id model);

/// Of the models that are not out, the one with the most parameters; among equals the one that
/// stands last in the config, where the smallest comes first. None: all are out.
std::optional<model_id> largest_left(std::span<const double> parameters_billion,
                                     std::span<const std::uint16_t> replicas);

/// Who goes on with a request.
struct resumption {
  model_id model;
  bool pinned = false; ///< writes all the rest: no role is there to route
};

/// `next` made the next token when the request was last heard of; `start` is where it began;
/// `fallback`, which is not out, steps in where both are.
resumption choose_resumption(model_id next, model_id start, model_id fallback,
                             std::span<const std::uint16_t> replicas);

} // namespace tokenrouter
