#pragma once

#include <memory>

#include "runtime/exec/heads/head.hpp"

namespace tokenrouter {

/// R2R's HiddenStatesTokenLMHeadLogitsClassifier (arXiv 2505.21600): of hidden state h, embedding e
/// of the proposed token and the K largest raw logits t,
///   x = input_projection(combined_projection([h ; e ; logits_projection(t)])),
///   per block x += mlp.3(gelu(mlp.0(layer_norm(x)))), score = sigmoid(linear(layer_norm(x))).
/// K, the widths and the number of blocks are those of the tensors. The score is the probability
/// that the proposed token diverges.
result<std::unique_ptr<routing_head>> load_r2r_head(const head_spec& spec,
                                                    std::uint32_t hidden_size);

} // namespace tokenrouter
