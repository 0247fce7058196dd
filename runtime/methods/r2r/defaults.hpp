#pragma once

#include <cstdint>

/// Defaults of R2R's released code, used where the config names no threshold.
namespace tokenrouter::r2r_defaults {

inline constexpr double aleatoric_threshold = 2.275;
inline constexpr double entropy_threshold = 0.45;        ///< nats; strategy entropy
inline constexpr double window_entropy_threshold = 0.02; ///< nats; single_rolling_window
inline constexpr double multi_input_threshold = 0.5;

/// Most positions a window may span: its values travel with every handoff.
inline constexpr std::uint32_t window_tokens_max = 16;

} // namespace tokenrouter::r2r_defaults
