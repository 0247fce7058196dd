#pragma once

#include <cstdint>

#include "runtime/exec/step.hpp"

/// What every backend demands of a step and lays out for its results alike.
namespace tokenrouter {

struct step_limits {
  std::uint32_t blocks = 0; ///< allocated
  std::uint32_t context_tokens_max = 0;
  std::uint32_t vocab_tokens = 0;
  std::uint32_t vocab_legal_tokens = 0; ///< for sampling
  bool reads_window = false;            ///< some head does
};

/// Stops the program if a step breaks the contract of step_input (a fault of the caller).
void check_step(const step_input& in, const step_limits& limits);

/// Makes room in `out` for what the step answers; reuses its memory.
void lay_out_results(const step_input& in, std::uint32_t vocab_legal_tokens, step_output& out);

} // namespace tokenrouter
