#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/exec/step.hpp"

/// Routing signals of one row, from its raw logits (before temperature, truncation, masks of the
/// sampler). Formulas: H = ln Σe^y − Σ(e^y·y)/Σe^y with y = z − max z, entries of −inf skipped;
/// LogU after the R2R paper's Dirichlet reading of the 10 largest raw logits, clamped to ≥ 1e-6.
namespace tokenrouter {

/// Sums over one row, each term e^y with y = z − largest; an entry that equals `largest` has y = 0,
/// so a row of −inf counts as uniform. NaN entries count as −inf here and are counted in `nans`.
struct softmax_sums {
  float largest = 0;
  double sum = 0;      ///< Σe^y
  double weighted = 0; ///< Σ(e^y·y), at most 0
  std::size_t nans = 0;
};

/// Requires a non-empty row. Sums in a fixed order.
softmax_sums sum_softmax(std::span<const float> logits);

struct entropy_value {
  float nats = 0;       ///< in [0, ln V]; NaN exactly if a logit is NaN
  float normalised = 0; ///< nats / ln V, V = logits.size(); 0 if V is 1
};

entropy_value entropy(std::span<const float> logits);

/// Softmax over the `k` largest logits only, in nats: in [0, ln k].
float top_entropy_nats(std::span<const float> largest_first);

struct evidence_value {
  float aleatoric = 0;
  float epistemic = 0;
};

/// `largest_first`: the 10 largest raw logits (fewer if the vocabulary is smaller).
evidence_value evidence(std::span<const float> largest_first);

/// The `k` largest entries, descending, into `out` (resized to min(k, logits.size())). NaN entries
/// come first, so that what is computed from them is NaN as well.
void top_logits(std::span<const float> logits, std::size_t k, std::vector<float>& out);

/// Fills the signal fields of `out` that `wanted` names, heads excepted.
void fill_signals(std::span<const float> logits, signal_set wanted, std::vector<float>& scratch,
                  step_row_output& out);

} // namespace tokenrouter
