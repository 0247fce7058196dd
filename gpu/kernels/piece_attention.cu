#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/attention_state.cuh"
#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr int warps = 4;
constexpr int block_tokens = 16;

/// Every warp takes KV blocks of its own, four apart, keeps a softmax of its own, and the warps'
/// results are merged at the end. Keys and values go from memory to registers in 16-byte loads:
///  - keys are the B operand of scores: 8 neighbouring dimensions of a token serve two products,
///    with the queries read in the same order;
///  - values are the B operand of sums, see warp_state, two tokens merged by a byte permutation.
template <int head_dim>
struct key_block {
  uint4 part[2][head_dim / 32]; ///< tokens lane / 4 and that + 8

  __device__ void load(const bf16* keys) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int i = 0; i < head_dim / 32; ++i)
        part[half][i] =
            stream_activations(keys + (lane / 4 + half * 8) * head_dim + i * 32 + lane % 4 * 8);
  }
};

template <int head_dim>
struct value_block {
  uint4 part[4][head_dim / 64]; ///< tokens 2t, 2t + 1, 2t + 8, 2t + 9 with t = lane % 4

  /// Tokens past `count` become 0: their memory may hold anything.
  __device__ void load(const bf16* values, int count) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = lane % 4 * 2 + i % 2 + i / 2 * 8;
#pragma unroll
      for (int half = 0; half < head_dim / 64; ++half)
        part[i][half] =
            token < count ? stream_activations(values + token * head_dim + half * 64 + lane / 4 * 8)
                          : make_uint4(0, 0, 0, 0);
    }
  }
};

template <int head_dim>
struct query_tile {
  uint4 low[head_dim / 32], high[head_dim / 32]; ///< rows lane / 4 and that + 8

  __device__ void load(const attention_call& c, const attention_piece& piece, int kv_head,
                       int group) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int rows = piece.token_count * group;
    const auto row_at = [&](int row, int i) {
      if (row >= rows)
        return make_uint4(0, 0, 0, 0);
      const std::uint64_t token = static_cast<std::uint64_t>(piece.first_token + row / group);
      const bf16* q = static_cast<const bf16*>(c.q) +
                      (token * c.heads + kv_head * group + row % group) * head_dim;
      return __ldcg(reinterpret_cast<const uint4*>(q + i * 32 + lane % 4 * 8));
    };
#pragma unroll
    for (int i = 0; i < head_dim / 32; ++i) {
      low[i] = row_at(lane / 4, i);
      high[i] = row_at(lane / 4 + 8, i);
    }
  }
};

/// Scores of 16 rows and 16 tokens, two column tiles.
template <int head_dim>
__device__ void score(const query_tile<head_dim>& q, const key_block<head_dim>& k,
                      float (&scores)[2][4]) {
#pragma unroll
  for (int i = 0; i < head_dim / 32; ++i) {
    const unsigned first[4] = {q.low[i].x, q.high[i].x, q.low[i].y, q.high[i].y};
    const unsigned second[4] = {q.low[i].z, q.high[i].z, q.low[i].w, q.high[i].w};
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      multiply_add(scores[tile], first, k.part[tile][i].x, k.part[tile][i].y);
      multiply_add(scores[tile], second, k.part[tile][i].z, k.part[tile][i].w);
    }
  }
}

template <int head_dim>
__device__ void add_values(warp_state<head_dim>& s, const float (&weights)[2][4],
                           const value_block<head_dim>& v) {
  unsigned p[4];
  pack_weights(weights, p);
#pragma unroll
  for (int half = 0; half < head_dim / 64; ++half) {
    const uint4 part[4] = {v.part[0][half], v.part[1][half], v.part[2][half], v.part[3][half]};
    add_weighted(s.sums[half], p, part);
  }
}

/// A piece of one kv head, and the warp's first block of it, which is asked for while the piece
/// before it is merged.
template <int head_dim>
struct warp_piece {
  attention_piece piece;
  int kv_head = 0;
  int block = 0; ///< of the table; beyond the piece's end: none for this warp
  bool asked = false;
  key_block<head_dim> k;
  value_block<head_dim> v;

  __device__ bool any() const { return block < piece.block_end; }
  __device__ int last() const { return piece.position + piece.token_count - 1; }
  __device__ const bf16* place(const attention_call& c, int b) const {
    const std::uint64_t head = static_cast<std::uint64_t>(kv_head) * block_tokens * head_dim;
    return static_cast<const bf16*>(c.kv.pool) + head +
           static_cast<std::uint64_t>(c.tables[piece.table + b]) * c.kv.block_elements;
  }
  __device__ void ask(const attention_call& c) {
    const bf16* at = place(c, block);
    k.load(at + c.kv.key_offset);
    v.load(at + c.kv.value_offset, last() - block * block_tokens + 1);
    asked = true;
  }

  /// `early`: the kernel in front may still run. Keys and values of blocks that were full before
  /// this wave are there already.
  __device__ void start(const attention_call& c, const attention_piece* pieces, int item,
                        bool early) {
    const int kv_heads = static_cast<int>(c.kv_heads);
    piece = pieces[item / kv_heads];
    kv_head = item % kv_heads;
    block = piece.block_begin + static_cast<int>(threadIdx.x) / 32;
    asked = false;
    if (any() && (!early || (block + 1) * block_tokens <= piece.wave_position))
      ask(c);
  }
};

template <int head_dim>
__device__ void attend(warp_state<head_dim>& s, const attention_call& c, warp_piece<head_dim>& p,
                       int group) {
  if (!p.any())
    return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int last_position[2] = {p.piece.position + lane / 4 / group,
                                p.piece.position + (lane / 4 + 8) / group};
  query_tile<head_dim> q;
  q.load(c, p.piece, p.kv_head, group);
  if (!p.asked)
    p.ask(c);
  while (true) {
    float scores[2][4] = {};
    score<head_dim>(q, p.k, scores);
    const int next = p.block + warps;
    const bool more = next < p.piece.block_end;
    const bf16* at = more ? p.place(c, next) : nullptr;
    if (more)
      p.k.load(at + c.kv.key_offset);
    weigh(s, scores, c.scale * log2_e, p.block * block_tokens, last_position);
    add_values<head_dim>(s, scores, p.v);
    if (!more)
      return;
    p.block = next;
    p.v.load(at + c.kv.value_offset, p.last() - next * block_tokens + 1);
  }
}

/// What one thread block of a piece shares.
template <int head_dim>
struct merge_memory {
  float sums[warps][16][head_dim];
  float largest[warps][16];
  float total[warps][16];
  bool last;
};

template <int head_dim>
__device__ void put_warp(const warp_state<head_dim>& s, merge_memory<head_dim>& m) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float total = s.total[row];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    const int r = lane / 4 + row * 8;
    if (lane % 4 == 0) {
      m.largest[warp][r] = s.largest[row];
      m.total[warp][r] = total;
    }
#pragma unroll
    for (int half = 0; half < head_dim / 64; ++half)
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        float* to = &m.sums[warp][r][half * 64 + (lane % 4 * 2 + side) * 8];
#pragma unroll
        for (int j = 0; j < 8; ++j)
          to[j] = s.sums[half][j][row * 2 + side];
      }
  }
}

/// Result of a row over `parts` parts, each with its largest score, total and sums.
template <class Bounds, class Sums>
__device__ float merge(int parts, const Bounds& bounds, const Sums& sums, float& largest,
                       float& total) {
  largest = -INFINITY;
  for (int i = 0; i < parts; ++i)
    largest = fmaxf(largest, bounds(i).x);
  total = 0;
  float sum = 0;
  for (int i = 0; i < parts; ++i) {
    const float2 b = bounds(i);
    const float share = b.x == -INFINITY ? 0.0f : power_of_two(b.x - largest);
    total += b.y * share;
    sum += share == 0.0f ? 0.0f : sums(i) * share;
  }
  return sum;
}

template <int head_dim>
__device__ bf16* out_row(const attention_call& c, const attention_piece& piece, int kv_head,
                         int group, int row) {
  const std::uint64_t token = static_cast<std::uint64_t>(piece.first_token + row / group);
  return static_cast<bf16*>(c.out) + (token * c.heads + kv_head * group + row % group) * head_dim;
}

/// Turns the bounds of a unit's pieces, [pieces][16] in `shares`, into the factors of their sums.
__device__ void share_out(float2* bounds, int pieces, int rows) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int row = warp; row < rows; row += warps) {
    float most = -INFINITY;
    for (int p = lane; p < pieces; p += 32)
      most = fmaxf(most, bounds[p * 16 + row].x);
    for (int step = 16; step > 0; step /= 2)
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    float total = 0;
    for (int p = lane; p < pieces; p += 32) {
      float2& b = bounds[p * 16 + row];
      b.x = b.x == -INFINITY ? 0.0f : power_of_two(b.x - most);
      total += b.x * b.y;
    }
    total = warp_sum(total);
    for (int p = lane; p < pieces; p += 32)
      bounds[p * 16 + row].x /= total;
  }
}

/// The thread block that comes last of a unit merges its pieces, in their order.
template <int head_dim>
__device__ void merge_pieces(const attention_call& c, const attention_piece& piece,
                             const piece_memory& memory, int kv_head, int group, int rows,
                             merge_memory<head_dim>& m) {
  __threadfence();
  __syncthreads();
  unsigned* left = memory.left + piece.unit * static_cast<int>(c.kv_heads) + kv_head;
  if (threadIdx.x == 0)
    m.last = atomicAdd(left, 1u) + 1 == static_cast<unsigned>(piece.piece_count);
  __syncthreads();
  if (!m.last)
    return;
  __threadfence();
  if (threadIdx.x == 0)
    *left = 0;
  static_assert(sizeof m.sums >= pieces_of_unit_max * 16 * sizeof(float2));
  float2* bounds = reinterpret_cast<float2*>(&m.sums);
  const std::uint64_t stride = std::uint64_t{c.kv_heads} * 16; // rows from piece to piece
  const std::uint64_t first =
      static_cast<std::uint64_t>(piece.partial) * stride + static_cast<unsigned>(kv_head) * 16;
  for (int i = static_cast<int>(threadIdx.x); i < piece.piece_count * 16; i += 32 * warps)
    bounds[i] =
        __ldcg(reinterpret_cast<const float2*>(memory.bounds) + first + i / 16 * stride + i % 16);
  __syncthreads();
  share_out(bounds, piece.piece_count, rows);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < rows * head_dim / 4; i += 32 * warps) {
    const int row = i / (head_dim / 4), d = i % (head_dim / 4);
    const float4* from =
        reinterpret_cast<const float4*>(memory.sums + (first + row) * head_dim) + d;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int p = 0; p < piece.piece_count; ++p) {
      const float4 part = __ldcg(from + p * stride * (head_dim / 4));
      const float share = bounds[p * 16 + row].x;
      sum.x = fmaf(part.x, share, sum.x);
      sum.y = fmaf(part.y, share, sum.y);
      sum.z = fmaf(part.z, share, sum.z);
      sum.w = fmaf(part.w, share, sum.w);
    }
    uint2* to = reinterpret_cast<uint2*>(out_row<head_dim>(c, piece, kv_head, group, row)) + d;
    *to = make_uint2(pack_bf16(sum.x, sum.y), pack_bf16(sum.z, sum.w));
  }
}

template <int head_dim>
__global__ void __launch_bounds__(32 * warps)
    piece_kernel(attention_call c, const attention_piece* pieces, const std::int32_t* count,
                 piece_memory memory) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto& m = *reinterpret_cast<merge_memory<head_dim>*>(shared);
  const int group = static_cast<int>(c.heads / c.kv_heads);
  const int items = __ldcg(count) * static_cast<int>(c.kv_heads);
  int item = static_cast<int>(blockIdx.x);
  warp_piece<head_dim> mine;
  if (item < items)
    mine.start(c, pieces, item, true);
  wait_for_previous();
  let_next_start();
  while (item < items) {
    warp_state<head_dim> state;
    attend<head_dim>(state, c, mine, group);
    const attention_piece piece = mine.piece;
    const int kv_head = mine.kv_head;
    item += static_cast<int>(gridDim.x);
    if (item < items)
      mine.start(c, pieces, item, false);
    put_warp<head_dim>(state, m);
    __syncthreads();
    const int rows = piece.token_count * group;
    for (int i = static_cast<int>(threadIdx.x); i < rows * head_dim; i += 32 * warps) {
      const int row = i / head_dim, d = i % head_dim;
      float largest, total;
      const float sum = merge(
          warps, [&](int w) { return make_float2(m.largest[w][row], m.total[w][row]); },
          [&](int w) { return m.sums[w][row][d]; }, largest, total);
      if (piece.piece_count == 1) {
        out_row<head_dim>(c, piece, kv_head, group, row)[d] = __float2bfloat16_rn(sum / total);
        continue;
      }
      const std::uint64_t at =
          (std::uint64_t(piece.partial + piece.piece) * c.kv_heads + kv_head) * 16 + row;
      memory.sums[at * head_dim + d] = sum;
      if (d == 0)
        reinterpret_cast<float2*>(memory.bounds)[at] = make_float2(largest, total);
    }
    if (piece.piece_count > 1)
      merge_pieces<head_dim>(c, piece, memory, kv_head, group, rows, m);
    __syncthreads();
  }
}

} // namespace

bool fast_attention_fits(std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim) {
  return heads / kv_heads <= 16 && (head_dim == 64 || head_dim == 128);
}

void piece_attention(const attention_call& call, const attention_piece* pieces,
                     const std::int32_t* count, const piece_memory& memory, std::uint32_t blocks,
                     cudaStream_t stream) {
  if (call.head_dim == 64)
    launch(piece_kernel<64>, {dim3(blocks), dim3(32 * warps), sizeof(merge_memory<64>)}, stream,
           call, pieces, count, memory);
  else
    launch(piece_kernel<128>, {dim3(blocks), dim3(32 * warps), sizeof(merge_memory<128>)}, stream,
           call, pieces, count, memory);
}

} // namespace tokenrouter::gpu
