#include "gpu/kernels/persistent_layers.hpp"

#include <algorithm>

#include "gpu/kernels/kernel_target.cuh"
#include "gpu/kernels/persistent_attention.cuh"
#include "gpu/kernels/persistent_merge.cuh"
#include "gpu/kernels/persistent_product.cuh"

namespace tokenrouter::gpu {
namespace {

static_assert(persistent_hidden_max == streamed_segments * segment_k);
static_assert(persistent_hidden_max * sizeof(float) <= stage_bytes);

/// Stages that readers wait for at once.
constexpr int streamed_stages = stream_group * streamed_segments / stage_segments;
constexpr int added_stages = added_tiles * added_segments / stage_segments;
constexpr std::uint32_t ring_stages_min = std::max(streamed_stages, added_stages);

template <int head_dim, bool two_halves>
constexpr std::size_t memory_bytes = (sizeof(block_memory<head_dim, two_halves>) + 127) / 128 * 128;

/// Fills the ring in the order in which the others read it.
struct ring_filler {
  ring& r;
  std::uint64_t policy;

  /// Column tiles [first, first + count) of a matrix, see product.
  __device__ void weights(const bf16* matrix, int k, int first, int count, int group_tiles,
                          int held) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int group = 0; group < count; group += group_tiles)
      for (int segments = 0; segments * segment_k < k; segments += held)
        for (int tile = group; tile < min(count, group + group_tiles); ++tile)
          for (int at = segments * segment_k; at < min(k, (segments + held) * segment_k);
               at += stage_k) {
            const unsigned bytes = static_cast<unsigned>(min(stage_k, k - at)) * 2;
            r.begin(8 * bytes);
            if (lane < 8)
              bulk_copy(r.here() + lane * stage_row_bytes,
                        matrix + std::uint64_t((first + tile) * 8 + lane) * k + at, bytes,
                        r.full + r.stage, policy);
            r.next();
          }
  }

  /// Weights of the norm in front of a product, unless it has no columns here.
  __device__ void norm(const float* weight, unsigned hidden, int count) {
    if (count == 0)
      return;
    r.begin(hidden * 4);
    if (threadIdx.x % 32 == 0)
      bulk_copy(r.here(), weight, hidden * 4, r.full + r.stage, policy);
    r.next();
  }

  /// Keys and values of an item, whose blocks are `known` from place `at` on.
  template <int head_dim, class Memory>
  __device__ void item(const Memory& m, const persistent_call& c, unsigned layer, int index,
                       int at) {
    using layout = stage_block<head_dim>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const attention_piece& piece = m.items[index];
    const int count = piece.block_end - piece.block_begin;
    const std::int32_t* table = c.tables + piece.table + piece.block_begin;
    const std::uint64_t from = (2 * layer + lane % 2) * c.side_elements +
                               std::uint64_t(m.item_heads[index]) * 16 * head_dim;
    for (int i = 0; i < count; i += layout::per_stage) {
      const int here = min(layout::per_stage, count - i);
      r.begin(static_cast<unsigned>(here * layout::bytes));
      if (lane < 2 * here) {
        const int b = i + lane / 2;
        const int block = at + b < known_blocks ? m.blocks[at + b] : table[b];
        bulk_copy(r.here() + lane * (layout::bytes / 2),
                  c.pool + std::uint64_t(block) * c.block_elements + from, layout::bytes / 2,
                  r.full + r.stage, policy);
      }
      r.next();
    }
  }
};

/// Norms of queries and keys are needed at once when their turn comes: fetches the next layer's.
template <class Memory>
__device__ void prefetch_norms(const Memory& m, const persistent_call& c, unsigned layer) {
  const unsigned lane = threadIdx.x % 32, at = blockIdx.x * 32;
  if (layer >= c.shape.layers || lane >= 2 || at >= c.shape.head_dim)
    return;
  const float* norm = lane == 0 ? m.layers[layer].q_norm : m.layers[layer].k_norm;
  if (norm)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(norm + at));
}

template <int head_dim, class Memory>
__device__ void fill_ring(const Memory& m, ring r, const persistent_call& c, int items) {
  const persistent_shape& s = c.shape;
  const block_shares shares(s);
  ring_filler fill{r, read_once_policy()};
#pragma unroll 1
  for (unsigned layer = 0; layer < s.layers; ++layer) {
    const persistent_layer& l = m.layers[layer];
    prefetch_norms(m, c, layer + 1);
    const int hidden = static_cast<int>(s.hidden);
    fill.norm(l.input_norm, s.hidden, shares.qkv.count);
    fill.weights(l.qkv, hidden, shares.qkv.first, shares.qkv.count, stream_group,
                 streamed_segments);
    int at = 0;
    for (int i = 0; i < items; ++i) {
      fill.template item<head_dim>(m, c, layer, i, at);
      at += m.items[i].block_end - m.items[i].block_begin;
    }
    fill.weights(l.attention_out, static_cast<int>(s.heads * s.head_dim), shares.hidden.first,
                 shares.hidden.count, added_tiles, added_segments);
    fill.norm(l.post_norm, s.hidden, shares.gates.count);
    fill.weights(l.gate_up, hidden, 2 * shares.gates.first, 2 * shares.gates.count, stream_group,
                 streamed_segments);
    fill.weights(l.down, static_cast<int>(s.intermediate), shares.hidden.first, shares.hidden.count,
                 added_tiles, added_segments);
  }
}

/// The thread block's pieces, what is known of tokens, and barriers.
template <int head_dim, class Memory>
__device__ void set_up(Memory& m, const persistent_call& c, int items) {
  const int me = static_cast<int>(threadIdx.x), all = static_cast<int>(blockDim.x);
  const int kv_heads = static_cast<int>(c.shape.kv_heads), pieces = *c.piece_count;
  const int group = static_cast<int>(c.shape.heads) / kv_heads;
  if (me < static_cast<int>(c.stages)) {
    init_barrier(m.full + me, 1);
    init_barrier(m.empty + me, persistent_warps);
  }
  if (me == 0)
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  for (unsigned i = threadIdx.x; i < c.shape.layers; i += blockDim.x)
    m.layers[i] = c.layers[i];
  for (int i = me; i < items; i += all) {
    const int item = static_cast<int>(blockIdx.x + gridDim.x * i);
    m.items[i] = c.pieces[item / kv_heads];
    m.item_heads[i] = item % kv_heads;
  }
  for (int i = me; i < pieces; i += all) {
    const attention_piece& p = c.pieces[i];
    if (p.piece == 0)
      for (int t = 0; t < p.token_count; ++t) {
        m.partial[p.first_token + t] = p.partial;
        m.piece_count[p.first_token + t] = p.piece_count;
        m.first_row[p.first_token + t] = t * group;
      }
  }
  __syncthreads();
  int at = 0;
  for (int i = 0; i < items; ++i) {
    const attention_piece& p = m.items[i];
    const int count = p.block_end - p.block_begin;
    for (int b = me; b < count && at + b < known_blocks; b += all)
      m.blocks[at + b] = c.tables[p.table + p.block_begin + b];
    at += count;
  }
  __syncthreads();
}

/// Clears the words that the launch before this one left in the other set; by one warp.
__device__ void clear_words(const persistent_call& c, unsigned set, unsigned rows) {
  const std::uint64_t count = std::uint64_t{rows} * c.exchange.row_words / 4;
  const uint4 absent = make_uint4(absent_word, absent_word, absent_word, absent_word);
  for (unsigned layer = 0; layer < c.shape.layers; ++layer) {
    uint4* to = reinterpret_cast<uint4*>(exchange_words(c, set, layer).base);
    for (std::uint64_t i = blockIdx.x * 32 + threadIdx.x % 32; i < count; i += gridDim.x * 32)
      to[i] = absent;
  }
}

/// The last thread block leaves the state to the next launch.
__device__ void finish(const persistent_call& c, unsigned launches, unsigned rows) {
  persistent_state* state = c.exchange.state;
  if (threadIdx.x != 0 || atomicAdd(&state->done, 1u) + 1 != gridDim.x)
    return;
  state->rows[launches % 2] = rows;
  state->rows[1 - launches % 2] = 0;
  state->done = 0;
  state->launches = launches + 1;
}

template <int head_dim, bool two_halves>
struct layer_runner {
  using memory = block_memory<head_dim, two_halves>;
  memory& m;
  ring& r;
  const persistent_call& c;
  const block_shares shares;
  unsigned set, rows;
  int items;

  __device__ float* residual_at(unsigned row, unsigned tile, unsigned column) {
    return &m.residual[row][tile * 8 + column];
  }

  /// A product of the normed residual: queries, keys and values, or gated.
  __device__ __forceinline__ void stream_product(const residual_rows& from, const float* bias,
                                                 int first_group, int count, bool gated,
                                                 const exchange_words& words) {
    const int groups = gated ? 2 : 1; // column tiles of a share's group
    product<stream_group, stream_tiles, two_halves>(
        m, r, groups * count, static_cast<int>(c.shape.hidden), static_cast<int>(rows), c.eps,
        gated, normed_operands<two_halves>{from, r, rows},
        [&](unsigned row, unsigned tile, unsigned column, const auto& sums) {
          const unsigned at = (groups * first_group + tile) * 8 + column;
          float2 v = sums(0);
          if (bias) {
            v.x += bias[at];
            v.y += bias[at + 1];
          }
          if (!gated) {
            write_bf16_pair(words.qkv(row) + at / 2, v.x, v.y);
            return;
          }
          float2 up = sums(1);
          if (bias) {
            up.x += bias[at + 8];
            up.y += bias[at + 9];
          }
          const unsigned out = (first_group + tile / 2) * 8 + column;
          write_bf16_pair(words.gated(row) + out / 2, swiglu_of(v.x, up.x), swiglu_of(v.y, up.y));
        });
  }

  /// Adds a product of bf16 words to the residual.
  __device__ __forceinline__ void add(const unsigned* operands, int k, const float* bias, float* to,
                                      unsigned tag, bool last) {
    const unsigned hidden = c.shape.hidden;
    product<added_tiles, added_tiles, two_halves>(
        m, r, shares.hidden.count, k, static_cast<int>(rows), 0.0f, false,
        word_operands<two_halves>{operands, c.exchange.row_words, rows},
        [&](unsigned row, unsigned tile, unsigned column, const auto& sums) {
          const unsigned at = (shares.hidden.first + tile) * 8 + column;
          float2* held = reinterpret_cast<float2*>(residual_at(row, tile, column));
          float2 v = sums(0);
          v.x += held->x + (bias ? bias[at] : 0.0f);
          v.y += held->y + (bias ? bias[at + 1] : 0.0f);
          *held = v;
          const std::uint64_t place = std::uint64_t{row} * hidden + at;
          if (last)
            *reinterpret_cast<float2*>(c.residual + place) = v;
          write_tagged_pair(to + place, v.x, v.y, tag); // the last one too: no layer-0 tag stays
        });
  }

  __device__ void run() {
    const unsigned mine = static_cast<unsigned>(shares.hidden.count) * 8;
    for (unsigned i = threadIdx.x; i < rows * mine; i += persistent_threads)
      m.residual[i / mine][i % mine] =
          __bfloat162float(c.embedding[std::uint64_t(c.ids[i / mine]) * c.shape.hidden +
                                       shares.hidden.first * 8 + i % mine]);
      // Each part of the code stands here once: a layer shall fit the instruction cache.
#pragma unroll 1
    for (unsigned half = 0; half < 2 * c.shape.layers; ++half) {
      const unsigned layer = half / 2, tag = tag_of_layer(layer);
      const bool attention = half % 2 == 0; // else the gated part
      const exchange_words words(c, set, layer);
      const persistent_layer& l = m.layers[layer];
      const float* from = !attention   ? c.exchange.middle
                          : layer == 0 ? nullptr
                                       : c.exchange.residual;
      stream_product({from, attention ? tag_of_layer(layer - 1) : tag, c.embedding, c.ids,
                      c.shape.hidden, rows > crowded_rows},
                     attention ? l.qkv_bias : l.gate_up_bias,
                     attention ? shares.qkv.first : shares.gates.first,
                     attention ? shares.qkv.count : shares.gates.count, !attention, words);
      if (attention) {
#pragma unroll 1
        for (int i = 0; i < items; ++i)
          attend_item<head_dim>(m, r, c, words, layer, i);
        merge_pieces<head_dim>(m, c, words, tag, rows);
      }
      add(attention ? words.attended(0) : words.gated(0),
          static_cast<int>(attention ? c.shape.heads * c.shape.head_dim : c.shape.intermediate),
          attention ? l.attention_out_bias : l.down_bias,
          attention ? c.exchange.middle : c.exchange.residual, tag, half + 1 == 2 * c.shape.layers);
    }
  }
};

template <int head_dim, bool two_halves>
__global__ void __launch_bounds__(persistent_threads + 32, 1)
    persistent_kernel(const __grid_constant__ persistent_call c) {
  if constexpr (!compiled_for_sm_90)
    return; // no other target has bulk copies
  extern __shared__ __align__(128) unsigned char shared[];
  auto& m = *reinterpret_cast<block_memory<head_dim, two_halves>*>(shared);
  const unsigned launches = *reinterpret_cast<volatile unsigned*>(&c.exchange.state->launches);
  const unsigned set = launches % 2;
  const unsigned left = *reinterpret_cast<volatile unsigned*>(&c.exchange.state->rows[1 - set]);
  unsigned rows = 0;
  while (rows < c.tokens && c.slots[rows] >= 0)
    ++rows;
  const int all_items = *c.piece_count * static_cast<int>(c.shape.kv_heads);
  const int items =
      max(0, (all_items - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) /
                 static_cast<int>(gridDim.x));
  set_up<head_dim>(m, c, items);
  ring r{shared + memory_bytes<head_dim, two_halves>, m.full, m.empty, static_cast<int>(c.stages)};
  if (threadIdx.x >= persistent_threads) {
    fill_ring<head_dim>(m, r, c, items);
    clear_words(c, 1 - set, left);
  } else {
    layer_runner<head_dim, two_halves>{m, r, c, block_shares(c.shape), set, rows, items}.run();
  }
  __syncthreads();
  finish(c, launches, rows);
}

template <int head_dim, bool two_halves>
std::uint32_t stages_of() {
  int device = 0, bytes = 0;
  cuda_check(cudaGetDevice(&device));
  cuda_check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const auto all = static_cast<std::size_t>(bytes), taken = memory_bytes<head_dim, two_halves>;
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(ring_stages_max, all > taken ? (all - taken) / stage_bytes : 0));
}

template <int head_dim, bool two_halves>
std::size_t shared_bytes(std::uint32_t stages) {
  return memory_bytes<head_dim, two_halves> + std::size_t{stages} * stage_bytes;
}

template <int head_dim, bool two_halves>
void run(persistent_call call, std::uint32_t blocks, cudaStream_t stream) {
  call.stages = stages_of<head_dim, two_halves>();
  launch(persistent_kernel<head_dim, two_halves>,
         {dim3(blocks), dim3(persistent_threads + 32),
          shared_bytes<head_dim, two_halves>(call.stages), 1, true},
         stream, call);
}

template <int head_dim>
void run_rows(const persistent_call& call, std::uint32_t blocks, cudaStream_t stream) {
  if (call.tokens > 8)
    run<head_dim, true>(call, blocks, stream);
  else
    run<head_dim, false>(call, blocks, stream);
}

template <int head_dim, bool two_halves>
bool fits_processor() {
  const auto kernel = persistent_kernel<head_dim, two_halves>;
  const std::uint32_t stages = stages_of<head_dim, two_halves>();
  const auto bytes = static_cast<int>(shared_bytes<head_dim, two_halves>(stages));
  int count = 0;
  return stages >= ring_stages_min &&
         cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) ==
             cudaSuccess &&
         cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, persistent_threads + 32,
                                                       static_cast<std::size_t>(bytes)) ==
             cudaSuccess &&
         count > 0;
}

template <int head_dim>
bool both_fit() {
  return fits_processor<head_dim, false>() && fits_processor<head_dim, true>();
}

} // namespace

std::uint32_t persistent_blocks(const persistent_shape& shape) {
  int device = 0, processors = 0, cooperative = 0;
  cuda_check(cudaGetDevice(&device));
  cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  cuda_check(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
  const auto count = static_cast<std::uint32_t>(processors);
  if (!cooperative || !has_sm_90(target_here()))
    return 0;
  const bool fit = shape.head_dim == 128  ? both_fit<128>()
                   : shape.head_dim == 64 ? both_fit<64>()
                                          : both_fit<32>();
  cudaGetLastError(); // a kernel that does not fit is no fault
  return fit ? count : 0;
}

void persistent_layers(const persistent_call& call, std::uint32_t blocks, cudaStream_t stream) {
  switch (call.shape.head_dim) {
  case 128:
    return run_rows<128>(call, blocks, stream);
  case 64:
    return run_rows<64>(call, blocks, stream);
  default:
    return run_rows<32>(call, blocks, stream);
  }
}

} // namespace tokenrouter::gpu
