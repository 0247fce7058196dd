#pragma once

#include <cstdint>

/// Counter-based random numbers: every draw is a pure function of (seed, stream, position), so it
/// does not depend on which rank makes it, in which batch, or how often it is repeated.
namespace tokenrouter {

/// What a draw is for. Values are part of the result of a run: never renumber.
enum class draw_stream : std::uint32_t {
  sample = 1, ///< sampling of a token; the model's index is mixed in by `sample_stream`
  route = 2,  ///< routing decisions
};

/// The sampling stream of the model with that index, so that two models asked for the same
/// position draw independently.
constexpr std::uint32_t sample_stream(std::uint16_t model_index) {
  return static_cast<std::uint32_t>(draw_stream::sample) | (std::uint32_t{model_index} << 8);
}

/// Uniform in [0, 1) with 24 random bits: Philox4x32-10, key = seed, counter = (position, stream,
/// lane). `lane` tells draws apart that one position needs several of.
float uniform_draw(std::uint64_t seed, std::uint32_t stream, std::uint32_t position,
                   std::uint32_t lane = 0);

} // namespace tokenrouter
