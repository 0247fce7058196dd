#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace tokenrouter::gpu {

inline constexpr std::uint32_t peers_max = 8;
inline constexpr std::uint32_t peer_sum_blocks_max = 64;

/// Most floats of one sum: a few rows of a wide model.
inline constexpr std::uint32_t peer_sum_floats_max = 1u << 18;

/// What a member of a group keeps in memory that all others can write: twice, for two sums under
/// way, a place for the values of each; and what says that they are there.
struct peer_area {
  float* values = nullptr;   ///< [2][members][peer_sum_floats_max]
  unsigned* flags = nullptr; ///< [members][peer_sum_blocks_max]: last sum that it wrote its part of
};

std::size_t peer_area_bytes(std::uint32_t members);
peer_area lay_out_peer_area(void* memory, std::uint32_t members);

struct peer_sum_call {
  float* values = nullptr; ///< [count], summed in place
  std::uint32_t count = 0; ///< a multiple of 4, at most peer_sum_floats_max
  std::uint32_t index = 0;
  std::uint32_t members = 0;
  peer_area areas[peers_max];     ///< of every member, as this device sees them
  unsigned* progress = nullptr;   ///< [2]: sums done, blocks of this one that are; 0 at first
  const unsigned* stop = nullptr; ///< of the host: once not 0, nobody waits any more
};

/// values = their sum over all members, added in the members' order, so equal bit for bit on all.
/// Every member writes its values to every other and waits for theirs.
void peer_sum(const peer_sum_call& call, cudaStream_t stream);

} // namespace tokenrouter::gpu
