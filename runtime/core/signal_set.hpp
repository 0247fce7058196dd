#pragma once

#include <cstdint>

namespace tokenrouter {

/// Routing signals a row of a step can return. All are computed from raw logits (before
/// temperature and truncation) and from the hidden state of the row's last position.
enum class signal : std::uint32_t {
  entropy = 1u << 0,      ///< nats and normalised, full vocabulary
  top_entropy = 1u << 1,  ///< softmax renormalised over the 20 largest logits, nats
  evidence = 1u << 2,     ///< aleatoric and epistemic uncertainty (LogU, 10 largest logits)
  heads = 1u << 3,        ///< scores of every head loaded with the model
  distribution = 1u << 4, ///< probabilities of the whole vocabulary, temperature 1
};

using signal_set = std::uint32_t;

constexpr signal_set to_set(signal x) {
  return static_cast<signal_set>(x);
}
constexpr signal_set operator|(signal a, signal b) {
  return to_set(a) | to_set(b);
}
constexpr signal_set operator|(signal_set a, signal b) {
  return a | to_set(b);
}
constexpr bool has(signal_set set, signal x) {
  return (set & to_set(x)) != 0;
}

} // namespace tokenrouter
