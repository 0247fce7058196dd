#pragma once

#include <memory>

#include "runtime/core/error.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/parameters.hpp"

namespace tokenrouter {

/// What a strategy says of one position.
struct switch_decision {
  bool to_large = false;
  float score = no_score; ///< the value that was compared
};

/// When R2R's small model lets the large one write a position. Pure; state is per request. A
/// strategy with a memory starts in "reference mode", as if the large model had made the token
/// before the first, and a signal that is NaN leads to the large model.
class switching_strategy {
 public:
  virtual ~switching_strategy() = default;
  virtual role_needs needs() const = 0;
  virtual switch_decision decide(const route_input& in, method_state& state) const = 0;
};

/// By method.switching_strategy: immediate, entropy, momentum, single_rolling_window,
/// duo_rolling_window, neural, neural_rolling_window, neural_multi_input, random. Errors:
/// invalid_argument (unknown name, threshold missing, window out of range).
result<std::unique_ptr<switching_strategy>>
make_switching_strategy(const method_parameters& parameters);

} // namespace tokenrouter
