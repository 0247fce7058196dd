#pragma once

#include <cstdint>

#include "runtime/core/ids.hpp"

/// Turns of one request come in epochs. Its home begins an epoch when replicas are lost; every turn
/// of a later epoch is newer than all of an earlier one, however many of those nobody knows of.
namespace tokenrouter {

inline constexpr unsigned epoch_turn_bits = 22; ///< turns of an epoch: some for each token
inline constexpr std::uint32_t epochs_max = 1u << (32 - epoch_turn_bits);

constexpr std::uint32_t epoch_of(turn_number turn) {
  return turn >> epoch_turn_bits;
}

/// From 1.
constexpr std::uint32_t turn_in_epoch(turn_number turn) {
  return turn & ((1u << epoch_turn_bits) - 1);
}

/// Requires epoch < epochs_max.
constexpr turn_number first_turn(std::uint32_t epoch) {
  return (epoch << epoch_turn_bits) + 1;
}

} // namespace tokenrouter
