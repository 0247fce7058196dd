#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/kernels/wave_types.hpp"

/// Attention of a wave's queries over paged keys and values, which are all in the pool already, the
/// wave's own included. A query sees the positions up to its own.
namespace tokenrouter::gpu {

/// One layer of the pool. In elements of its type: block b, kv head h, place p (of 16) has its
/// keys at b · block_elements + key_offset + (h · 16 + p) · head_dim, values likewise.
struct kv_view {
  const void* pool;
  std::uint64_t block_elements;
  std::uint64_t key_offset;
  std::uint64_t value_offset;
};

struct attention_call {
  const void* q; ///< [tokens][heads · head_dim]
  kv_view kv;
  const std::int32_t* tables; ///< block ids
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  float scale; ///< of scores: 1 / sqrt(head_dim)
  void* out;   ///< [tokens][heads · head_dim]
};

/// Whether `piece_attention` and `tile_attention` take such a model (bf16 only).
bool fast_attention_fits(std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim);

/// Tokens of one unit: 16 queries of a kv head fill a tile of the tensor cores.
constexpr std::uint32_t unit_tokens(std::uint32_t heads, std::uint32_t kv_heads) {
  return 16 / (heads / kv_heads);
}

/// Memory that pieces of one unit meet in.
struct piece_memory {
  float* sums;    ///< [partials][kv_heads][16][head_dim]
  float* bounds;  ///< [partials][kv_heads][16][2]: largest score, sum of weights
  unsigned* left; ///< [units][kv_heads], 0 before and after
};

/// bf16. `count`: how many pieces there are, on the device; at most `blocks` thread blocks take
/// them in turn.
void piece_attention(const attention_call& call, const attention_piece* pieces,
                     const std::int32_t* count, const piece_memory& memory, std::uint32_t blocks,
                     cudaStream_t stream);

/// bf16. Each tile reads keys and values once for all its tokens. Tiles run in their order.
void tile_attention(const attention_call& call, const attention_tile* tiles, std::uint32_t count,
                    cudaStream_t stream);

/// The same for tiles of up to warpgroup_tile_tokens; where wgmma_runs_here().
void warpgroup_attention(const attention_call& call, const attention_tile* tiles,
                         std::uint32_t count, cudaStream_t stream);

/// T = float or bf16, any head_dim up to 512. A query's result depends on nothing but the query and
/// the positions it sees. `tables_of`: per token, the offset of its block table.
template <class T>
void plain_attention(const attention_call& call, const std::int32_t* positions,
                     const std::int32_t* tables_of, std::uint32_t tokens, cudaStream_t stream);

/// Lets kernels take the shared memory they need; once for each device.
void prepare_attention();
void prepare_warpgroup_attention(); ///< where it fits; prepare_attention calls it

} // namespace tokenrouter::gpu
