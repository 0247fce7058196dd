#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/kernels/head_layers.hpp"

/// What heads with a window read of earlier positions: for each answered position its hidden state
/// and then its largest raw logits, descending, in the KV block that holds the position. So
/// whatever keeps, copies, shares or ships KV does the same to its record.
namespace tokenrouter::gpu {

/// Records of a pool: block after block, behind keys and values [16 places][floats].
struct record_view {
  std::byte* pool;
  std::uint64_t block_bytes;
  std::uint64_t offset_bytes; ///< in a block
  std::uint32_t floats;       ///< of a record; 0: none are kept
  std::uint32_t hidden_size;  ///< the first of them
};

struct record_call {
  record_view records;
  const draw_order* orders;  ///< [rows]
  const std::int32_t* slots; ///< of the wave's tokens
  const float* hidden;       ///< [rows][hidden_size]
  const float* top;          ///< [rows][kept_logits_max]
  std::uint32_t top_count;   ///< that a row has; a record holds zeros for more
  std::uint32_t rows;
};

/// Writes the records of a wave's answered positions.
void write_records(const record_call& call, cudaStream_t stream);

struct window_call {
  record_view records;
  const draw_order* orders;      ///< [rows]
  const std::int32_t* positions; ///< of the wave's tokens
  const std::int32_t* tables_of; ///< likewise
  const std::int32_t* tables;
  std::uint32_t window_positions;
  std::uint32_t top_count; ///< that the head wants of each position: the first of a record's
  std::int32_t hidden_at;  ///< offset of [window_positions][hidden_size], oldest first
  std::int32_t top_at;     ///< offset of [window_positions][top_count]; below 0: not wanted
};

/// Puts the window of each row into its workspace; zeros for positions before the order's start.
void gather_windows(const window_call& call, const head_rows& rows, cudaStream_t stream);

} // namespace tokenrouter::gpu
