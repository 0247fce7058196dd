#pragma once

#include "gpu/kernels/persistent_exchange.cuh"
#include "gpu/kernels/persistent_layers.hpp"
#include "gpu/kernels/persistent_ring.cuh"

/// What a thread block of the persistent kernel holds in shared memory, and its share of the work.
namespace tokenrouter::gpu {

constexpr int stream_tiles = 6; ///< column tiles of 8 that a product of the residual takes together
constexpr int streamed_segments = 2; ///< of its operands, which a warp holds
constexpr int stream_group = 3;      ///< of its tiles, which follow each other in the ring
constexpr int added_segments = 6;
constexpr unsigned crowded_rows = 2; ///< more make readers ask for one first
constexpr int added_tiles = 1;       ///< likewise, one that is added to it
constexpr int column_stride = 56;    ///< of a row of partial sums: rows in banks of their own
constexpr int residual_tiles_max = persistent_hidden_per_block / 8;
constexpr int items_max = persistent_items_max; ///< pieces of attention of a thread block
constexpr int known_blocks = 512;               ///< KV blocks whose place is known without asking

/// Shared memory beside the ring.
template <int head_dim, bool two_halves>
struct block_memory {
  static constexpr int rows = two_halves ? 16 : 8;
  static constexpr int sum_count = persistent_warps * rows * column_stride;
  float sums[sum_count]; ///< [warps][rows][columns] of products; of attention as it comes
  __align__(16) bf16 q[16][head_dim];
  __align__(16) bf16 new_keys[16][head_dim]; ///< of this wave
  __align__(16) bf16 new_values[16][head_dim];
  float largest[persistent_warps][16]; ///< of attention
  float total[persistent_warps][16];
  float most[16];
  __align__(16) float squares[16][persistent_warps]; ///< of rows to be normed
  float residual[16][8 * residual_tiles_max];        ///< of the thread block's columns
  persistent_layer layers[persistent_layers_max];    ///< nearer than the parameters are
  std::uint64_t full[ring_stages_max];
  std::uint64_t empty[ring_stages_max];
  attention_piece items[items_max];
  int item_heads[items_max];
  int blocks[known_blocks]; ///< of the items, one after another
  int partial[16];          ///< per token: first partial result of its unit,
  int piece_count[16];      ///< the unit's pieces,
  int first_row[16];        ///< the token's first row in it
};

/// Columns of a product, dealt out in groups: thread block b has `count` groups from `first` on.
struct column_share {
  int first, count;

  __device__ column_share(unsigned groups) {
    const int each = static_cast<int>((groups + gridDim.x - 1) / gridDim.x);
    first = static_cast<int>(blockIdx.x) * each;
    count = max(0, min(each, static_cast<int>(groups) - first));
  }
};

/// Shares of the four products in tiles of 8 columns.
struct block_shares {
  column_share qkv, hidden, gates; ///< gates: groups of 8 gates and 8 ups

  __device__ block_shares(const persistent_shape& s)
      : qkv((s.heads + 2 * s.kv_heads) * s.head_dim / 8), hidden(s.hidden / 8),
        gates(s.intermediate / 8) {}
};

/// Words of one layer and set.
struct exchange_words {
  unsigned* base;
  unsigned row_words;
  unsigned attended_at, gated_at;

  __device__ exchange_words(const persistent_call& c, unsigned set, unsigned layer)
      : row_words(c.exchange.row_words),
        attended_at((c.shape.heads + 2 * c.shape.kv_heads) * c.shape.head_dim / 2),
        gated_at(attended_at + c.shape.heads * c.shape.head_dim / 2) {
    base = c.exchange.words +
           std::uint64_t{set * c.shape.layers + layer} * persistent_rows_max * row_words;
  }
  __device__ unsigned* qkv(unsigned row) const { return base + row * row_words; }
  __device__ unsigned* attended(unsigned row) const { return qkv(row) + attended_at; }
  __device__ unsigned* gated(unsigned row) const { return qkv(row) + gated_at; }
};

} // namespace tokenrouter::gpu
