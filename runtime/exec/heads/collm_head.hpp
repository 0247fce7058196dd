#pragma once

#include <memory>

#include "runtime/exec/heads/head.hpp"

namespace tokenrouter {

/// Co-LLM's deferral row (arXiv 2403.03870): sigmoid(defer · h + bias), the probability of
/// deferring this token to the large model. `defer.bias` may be missing.
result<std::unique_ptr<routing_head>> load_collm_head(const head_spec& spec,
                                                      std::uint32_t hidden_size);

/// The same as the row `spec.row` of the LM head of the model in folder `spec.weights`, the input
/// embedding where that is tied. No JSON beside it. Error: invalid_argument (no row), as well.
result<std::unique_ptr<routing_head>> load_collm_row_head(const head_spec& spec,
                                                          std::uint32_t hidden_size);

} // namespace tokenrouter
