#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// A decoder-only transformer as its `config.json` describes it.
struct model_config {
  std::string architecture; ///< Qwen3ForCausalLM or LlamaForCausalLM
  std::uint32_t hidden_size = 0;
  std::uint32_t intermediate_size = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocab_tokens = 0;
  std::uint32_t context_tokens_max = 0; ///< max_position_embeddings
  float rms_norm_eps = 1e-6f;
  bool qk_norm = false; ///< Qwen3: RMSNorm of each query and key head before rotation
  bool attention_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;
  /// One inverse frequency for each pair of a head's dimensions (head_dim / 2 values), rope
  /// scaling (default, linear, llama3) applied.
  std::vector<double> rope_inverse_frequencies;
  std::vector<token_id> eos_tokens; ///< of generation_config.json, else config.json
};

/// Reads config.json and, where there is one, generation_config.json from a model folder. Errors:
/// not_found, malformed, mismatch (an architecture, activation or rope type that is not supported
/// is named with those that are; so are head counts that do not divide).
result<model_config> load_model_config(const std::filesystem::path& folder);

/// What each of `count` shards runs of the model: its share of heads and of the feed-forward
/// layer's width; hidden state and vocabulary stay whole. Error: mismatch (what does not divide is
/// named).
result<model_config> shard_of(const model_config& whole, std::uint32_t count);

} // namespace tokenrouter
