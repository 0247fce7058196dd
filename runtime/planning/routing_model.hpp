#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/core/error.hpp"

/// What the delayed-batching model knows of a job: how long a step of each model takes, where a
/// request goes after it, and how many tokens that commits.
namespace tokenrouter {

using matrix_rows = std::vector<std::vector<double>>;

/// Models the delayed-batching chain can have; its states grow with each.
inline constexpr std::uint32_t chain_models_max = 8;

/// Live requests the delayed-batching chain can have.
inline constexpr std::uint32_t chain_live_max = 64;

/// M models. Every matrix is M x M, its row the model that made the step.
struct routing_model {
  std::vector<double> latencies_ms;     ///< M; a step of that model with one row
  matrix_rows routing;                  ///< chance that a request goes from row to column
  matrix_rows committed_tokens;         ///< tokens that the step commits if it does
  std::uint32_t entry = 0;              ///< model at which requests start
  std::vector<double> row_latencies_ms; ///< M: what each row of a batch after the first adds; or
                                        ///< empty: steps take as long whatever their batch
  double grid_ms = 0.1; ///< times are rounded to whole multiples of it, at least one

  std::uint32_t models() const { return static_cast<std::uint32_t>(latencies_ms.size()); }
};

/// Refuses what is not a routing model, with the row or value at fault: 1 to `chain_models_max`
/// models, positive latencies and grid, square matrices, rows of chances that add up to 1 (within
/// 1e-6), commits that are not negative.
result<void> check_routing_model(const routing_model& model);

/// A step of model `i` with that many rows, in whole ticks of the grid, at least 1.
std::uint32_t step_ticks(const routing_model& model, std::size_t i, std::uint32_t rows);

/// Numbers of a preset; each uses what it names.
struct preset_parameters {
  double share = 0.35;         ///< r2r, citer, co-llm, rstitch: a small model's step goes on
  double return_share = 0.5;   ///< rstitch: a large model's step goes back
  std::vector<double> weights; ///< ensemble: chance of each model, one a model
};

/// Fills the matrices of `model` (latencies are kept, and say how many models there are).
///   r2r, citer, co-llm   2 models: P = [[1-p, p], [1, 0]], C = [[1, 0], [1, 0]]: the token of a
///                        step that goes on is dropped, the large model makes one and returns
///   rstitch              2 models: P = [[1-p, p], [q, 1-q]], C = [[1, 0], [1, 1]]: the large
///                        model keeps every token it makes
///   ensemble             any number: every row of P is `weights`, C is all ones
/// Errors: an unknown name, a wrong number of models, a share that is not one.
result<void> apply_preset(routing_model& model, std::string_view preset,
                          const preset_parameters& parameters);

} // namespace tokenrouter
