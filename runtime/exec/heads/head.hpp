#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/core/error.hpp"
#include "runtime/exec/backend.hpp"

/// Routing networks on the CPU. One instance belongs to one model actor's thread.
namespace tokenrouter {

/// What a head may read of one row, all float32.
struct head_input {
  std::span<const float> hidden;             ///< [hidden], the LM head's input of the last position
  std::span<const float> proposed_embedding; ///< [hidden], input embedding of the proposed token
  std::span<const float> top_logits;         ///< the largest raw logits, descending
};

class routing_head {
 public:
  virtual ~routing_head() = default;

  /// How many of the largest raw logits `score` wants (0: none).
  virtual std::uint32_t top_logits_wanted() const = 0;
  virtual bool wants_proposed_embedding() const = 0;

  /// The head's score in [0, 1] for one row; sums in a fixed order, so a row's score does not
  /// depend on others. Reuses memory of its own: one thread at a time.
  virtual float score(const head_input& in) = 0;

  virtual std::uint64_t weight_bytes() const = 0;
};

/// Loads a head of kind `r2r` (HiddenStatesTokenLMHeadLogitsClassifier), `citer` (batch norm is
/// folded into mlp.0) or `collm` (one row, with or without bias) for a model of `hidden_size`.
/// Errors: not_found, malformed, mismatch (a tensor is missing or has another shape: both shapes
/// are named), invalid_argument (unknown kind).
result<std::unique_ptr<routing_head>> load_head(const head_spec& spec, std::uint32_t hidden_size);

/// The `threshold` in [0, 1] that the JSON beside the weights recommends. Errors: not_found (no
/// JSON, or no such key), malformed, mismatch.
result<double> head_threshold(const head_spec& spec);

} // namespace tokenrouter
