#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/kernels/wave_types.hpp"

/// Tokens and routing signals from raw logits, as runtime/exec's sampler, signals and mixture say.
namespace tokenrouter::gpu {

/// Largest raw logits that are kept of a row, at most.
inline constexpr std::uint32_t kept_logits_max = 128;

struct draw_call {
  float* logits; ///< [rows][stride]; changed where a row has biases, until its token is drawn
  std::uint64_t stride;
  std::uint32_t count;        ///< of a row: the vocabulary legal for sampling
  const draw_order* orders;   ///< [rows]
  bool has_biases;            ///< some order has
  const std::int32_t* tables; ///< what the orders' biases are offsets into
  std::uint32_t rows;
  std::uint32_t top_wanted; ///< at most kept_logits_max; of rows that ask for heads
  bool top_of_all;          ///< of all rows
  float* top;               ///< [rows][kept_logits_max]: the first top_wanted, descending
  const float* mixes;
  float* distributions;
  drawn_row* out;          ///< [rows]; head scores are left alone
  likely_token* likeliest; ///< [rows][likeliest_max]: as many as the orders ask for
};

void draw_rows(const draw_call& call, cudaStream_t stream);

/// Lets the kernel take the shared memory it needs; once for each device.
void prepare_draws();

} // namespace tokenrouter::gpu
