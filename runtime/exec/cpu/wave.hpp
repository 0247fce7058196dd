#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter::cpu {

/// Tokens that pass through the layers together, at most. A longer step is cut into waves, one
/// after the other; the cut changes no result.
inline constexpr std::uint32_t wave_tokens_max = 96;

struct wave_token {
  token_id token = 0;
  std::uint32_t position = 0;
  const block_id* blocks = nullptr; ///< table of its request
};

/// Neighbouring tokens of one request whose attention is computed together.
struct wave_tile {
  std::uint32_t first_token = 0;
  std::uint32_t token_count = 0;
};

/// A position in this wave that is to be followed by a new token.
struct wave_end {
  static constexpr std::size_t last = SIZE_MAX;
  std::size_t row = 0;        ///< of the step
  std::uint32_t token = 0;    ///< of the wave
  std::size_t earlier = last; ///< place in step_output::earlier; `last`: the row's last position
};

struct wave {
  std::vector<wave_token> tokens;
  std::vector<wave_tile> tiles;
  std::vector<wave_end> ends;

  void reserve() {
    tokens.reserve(wave_tokens_max);
    tiles.reserve(wave_tokens_max);
    ends.reserve(wave_tokens_max);
  }
  void clear() {
    tokens.clear();
    tiles.clear();
    ends.clear();
  }
};

} // namespace tokenrouter::cpu
