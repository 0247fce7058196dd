#pragma once

#include <memory>

#include "runtime/exec/heads/head.hpp"

namespace tokenrouter {

/// CITER's confidence head (arXiv 2502.01976): sigmoid(linear(mlp.4(relu(batch_norm(mlp.0(h)))))),
/// high where the small model's token is adequate. Batch norm (mlp.1, running statistics, eps 1e-5)
/// is folded into mlp.0, and mlp.4, which nothing separates from `linear`, into that.
result<std::unique_ptr<routing_head>> load_citer_head(const head_spec& spec,
                                                      std::uint32_t hidden_size);

/// The same weights, layer by layer in float32: what the folded form is compared with.
result<std::unique_ptr<routing_head>> load_citer_unfolded_head(const head_spec& spec,
                                                               std::uint32_t hidden_size);

} // namespace tokenrouter
