#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "runtime/exec/backend.hpp"

/// A look inside a CPU backend, for tests. Each requires a backend of make_cpu_backend.
namespace tokenrouter::cpu {

/// Calls `tap` within step(), on its thread, for each row that wants a token: with the row's number
/// in the step, its hidden state after the final norm and its legal logits.
void tap_rows(backend& cpu_backend,
              std::function<void(std::size_t row, std::span<const float> hidden,
                                 std::span<const float> logits)>
                  tap);

/// Overwrites all KV blocks and all activations with bytes of 0xff: NaN in bf16 and in float32.
void poison(backend& cpu_backend);

} // namespace tokenrouter::cpu
