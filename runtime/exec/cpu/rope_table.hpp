#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tokenrouter::cpu {

/// Cosines and sines of rotary positions. Angles are kept in double precision as two small tables,
/// of position / 256 and position % 256, joined by the addition theorem: exact to far below a
/// float's last place at any context length, in a few hundred kilobytes.
class rope_table {
 public:
  /// `inverse_frequencies`: one for each pair of a head's dimensions.
  rope_table(std::span<const double> inverse_frequencies, std::uint32_t positions);

  std::uint32_t pairs() const { return pairs_; }

  /// Requires position < positions; writes pairs() values to each.
  void fill(std::uint32_t position, float* cosines, float* sines) const;

 private:
  struct turn {
    double cosine = 1;
    double sine = 0;
  };
  std::uint32_t pairs_;
  std::uint32_t positions_;
  std::vector<turn> coarse_; ///< [ceil(positions / 256)][pairs]
  std::vector<turn> fine_;   ///< [256][pairs]
};

} // namespace tokenrouter::cpu
