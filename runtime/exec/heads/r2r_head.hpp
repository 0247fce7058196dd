#pragma once

#include <memory>

#include "runtime/exec/heads/head.hpp"

namespace tokenrouter {

/// R2R's HiddenStatesTokenLMHeadLogitsClassifier (arXiv 2505.21600): r2r_network of the hidden
/// state, the embedding of the proposed token and the K largest raw logits. The score is the
/// probability that the proposed token diverges.
result<std::unique_ptr<routing_head>> load_r2r_head(const head_spec& spec,
                                                    std::uint32_t hidden_size);

/// The same over the last W = spec.window_positions positions: h is their hidden states and t their
/// K / W largest raw logits each, oldest first; e is of the proposed token alone. The logits are
/// projected to W · hidden. Error: invalid_argument (a window of 0), as well.
result<std::unique_ptr<routing_head>> load_r2r_multi_head(const head_spec& spec,
                                                          std::uint32_t hidden_size);

/// What it reads of each position; its errors are those of load_r2r_multi_head that concern it.
result<head_window> r2r_multi_window(const head_spec& spec);

} // namespace tokenrouter
