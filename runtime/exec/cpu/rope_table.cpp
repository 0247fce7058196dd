#include "runtime/exec/cpu/rope_table.hpp"

#include <cmath>

#include "runtime/core/check.hpp"

namespace tokenrouter::cpu {
namespace {

constexpr std::uint32_t fine_positions = 256;

} // namespace

rope_table::rope_table(std::span<const double> inverse_frequencies, std::uint32_t positions)
    : pairs_(static_cast<std::uint32_t>(inverse_frequencies.size())), positions_(positions) {
  const std::uint32_t coarse_positions = (positions + fine_positions - 1) / fine_positions;
  const auto add = [&](std::vector<turn>& table, std::uint32_t position) {
    for (const double frequency : inverse_frequencies)
      table.push_back({std::cos(position * frequency), std::sin(position * frequency)});
  };
  for (std::uint32_t i = 0; i < coarse_positions; ++i)
    add(coarse_, i * fine_positions);
  for (std::uint32_t i = 0; i < fine_positions; ++i)
    add(fine_, i);
}

void rope_table::fill(std::uint32_t position, float* cosines, float* sines) const {
  check(position < positions_, "rope_table: position beyond the model's context");
  const turn* a = coarse_.data() + std::size_t{position / fine_positions} * pairs_;
  const turn* b = fine_.data() + std::size_t{position % fine_positions} * pairs_;
  for (std::uint32_t i = 0; i < pairs_; ++i) {
    cosines[i] = static_cast<float>(a[i].cosine * b[i].cosine - a[i].sine * b[i].sine);
    sines[i] = static_cast<float>(a[i].sine * b[i].cosine + a[i].cosine * b[i].sine);
  }
}

} // namespace tokenrouter::cpu
