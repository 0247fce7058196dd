#pragma once

#include <memory>

#include "runtime/exec/heads/head.hpp"

namespace tokenrouter {

/// Co-LLM's deferral row (arXiv 2403.03870): sigmoid(defer · h + bias), the probability of
/// deferring this token to the large model. `defer.bias` may be missing.
result<std::unique_ptr<routing_head>> load_collm_head(const head_spec& spec,
                                                      std::uint32_t hidden_size);

} // namespace tokenrouter
