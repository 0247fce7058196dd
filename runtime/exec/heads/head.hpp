#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/core/error.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/exec/heads/head_program.hpp"

/// Routing networks. One instance belongs to one model actor's thread.
namespace tokenrouter {

/// What a head may read of one row, all float32.
struct head_input {
  std::span<const float> hidden;             ///< [hidden], the LM head's input of the last position
  std::span<const float> proposed_embedding; ///< [hidden], input embedding of the proposed token
  std::span<const float> top_logits;         ///< the largest raw logits, descending
  /// [window_positions][hidden + top_logits_wanted]: of the last positions of this request, oldest
  /// first, this one last, each its hidden state and then its largest raw logits, descending. Only
  /// where window_positions is above 1.
  std::span<const float> window = {};
};

class routing_head {
 public:
  virtual ~routing_head() = default;

  /// How many of the largest raw logits of a position `score` wants (0: none).
  virtual std::uint32_t top_logits_wanted() const = 0;

  /// Positions that `score` reads, the last one included; above 1 it reads them in `window` alone.
  virtual std::uint32_t window_positions() const { return 1; }

  virtual bool wants_proposed_embedding() const = 0;

  /// The head's score in [0, 1] for one row; sums in a fixed order, so a row's score does not
  /// depend on others. Reuses memory of its own: one thread at a time.
  virtual float score(const head_input& in) = 0;

  virtual std::uint64_t weight_bytes() const = 0;

  /// The same network as layers for another device; it refers to this head's weights.
  virtual head_program program() const = 0;
};

/// Loads a head for a model of `hidden_size`. Kinds:
///   r2r             HiddenStatesTokenLMHeadLogitsClassifier
///   r2r_multi       the same over several positions
///   citer           batch norm and the last two layers folded
///   citer_unfolded  the same weights layer by layer, a reference
///   collm           one row, with or without bias
///   collm_row       a row of the model's own LM head
///   rstitch         R-Stitch+
/// Errors: not_found, malformed, mismatch (a tensor is missing or has another shape: both shapes
/// are named), invalid_argument (unknown kind).
result<std::unique_ptr<routing_head>> load_head(const head_spec& spec, std::uint32_t hidden_size);

/// The `threshold` in [0, 1] that the JSON beside the weights recommends; an empty `kind` is not
/// compared with the JSON's. Errors: not_found (no JSON, or no such key), malformed, mismatch.
result<double> head_threshold(const head_spec& spec);

/// What a head reads of earlier positions through head_input::window.
struct head_window {
  std::uint32_t positions = 1;  ///< 1: nothing
  std::uint32_t top_logits = 0; ///< of each position
};

/// Of the head once loaded, from the headers of its file. Errors: those of loading that concern it.
result<head_window> head_window_of(const head_spec& spec);

/// Floats of what backends keep of a position for windows that such heads read later: its hidden
/// state and the largest logits that any of them wants. 0: none has a window. Errors: of
/// head_window_of.
result<std::uint32_t> window_record_floats(std::span<const head_spec> specs,
                                           std::uint32_t hidden_size);

/// Memory that the loaded head takes at most, from the headers of its file. Errors: not_found,
/// malformed.
result<std::uint64_t> head_memory_bytes(const head_spec& spec);

/// The same of several together.
result<std::uint64_t> heads_memory_bytes(std::span<const head_spec> specs);

/// Whether the JSON beside the weights is one of such a head. Errors: not_found, malformed,
/// mismatch.
result<void> check_head_description(const head_spec& spec);

} // namespace tokenrouter
