#pragma once

#include <memory>

#include "runtime/exec/heads/head.hpp"

namespace tokenrouter {

/// R-Stitch+'s router (arXiv 2507.17307 publishes no architecture; this is CITER's without batch
/// norm and with one hidden layer): sigmoid(linear(relu(mlp.0(h)))), the probability of switching
/// to the large model. Experimental.
result<std::unique_ptr<routing_head>> load_rstitch_head(const head_spec& spec,
                                                        std::uint32_t hidden_size);

} // namespace tokenrouter
