#include "gpu/kernels/attended_rows.cuh"
#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/barriers.cuh"
#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

/// 64 queries of one head in a thread block, 16 to a warp; 64 positions of keys and values at a
/// time pass through shared memory, the next ones on their way meanwhile. A row's 16-byte chunks
/// are stored in an order that depends on the row, so that eight rows of one column meet no bank
/// twice.
constexpr int warps = 4;
constexpr int threads = 32 * warps;
constexpr int step_tokens = 64;

static_assert(tile_tokens == 16 * warps);
static_assert(4 * step_tokens * 128 * sizeof(bf16) <= shared_bytes_everywhere);

template <int head_dim>
struct stage {
  bf16 keys[step_tokens * head_dim];
  bf16 values[step_tokens * head_dim];
};

template <int head_dim>
__device__ int chunk_place(int row, int chunk) {
  return row * head_dim + ((chunk ^ (row & 7)) * 8);
}

/// 16 bytes, or zeros if not `wanted`.
__device__ inline void copy_async(bf16* to, const bf16* from, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(wanted ? 16 : 0));
}

__device__ inline void load_matrices(unsigned (&r)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}

__device__ inline void load_matrices_transposed(unsigned (&r)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}

template <int head_dim>
__device__ void fetch(stage<head_dim>& s, const attention_call& c, const std::int32_t* table,
                      std::uint64_t head, int first_position, int count) {
  constexpr int chunks = head_dim / 8;
  for (int i = static_cast<int>(threadIdx.x); i < step_tokens * chunks; i += threads) {
    const int row = i / chunks, chunk = i % chunks;
    const int position = first_position + row;
    const bool wanted = position < count;
    const std::uint64_t block =
        static_cast<std::uint64_t>(wanted ? table[position / 16] : table[0]);
    const bf16* from = static_cast<const bf16*>(c.kv.pool) + block * c.kv.block_elements +
                       (head * 16 + position % 16) * head_dim + chunk * 8;
    copy_async(s.keys + chunk_place<head_dim>(row, chunk), from + c.kv.key_offset, wanted);
    copy_async(s.values + chunk_place<head_dim>(row, chunk), from + c.kv.value_offset, wanted);
  }
  asm volatile("cp.async.commit_group;");
}

template <int head_dim>
struct warp_state {
  unsigned q[head_dim / 16][4];
  float sums[head_dim / 8][4] = {};
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};
};

template <int head_dim>
__device__ void load_queries(warp_state<head_dim>& s, const bf16* q, std::uint64_t stride,
                             int first_row, int rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < head_dim / 16; ++i)
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int row = first_row + lane / 4 + part % 2 * 8;
      const int column = i * 16 + part / 2 * 8 + lane % 4 * 2;
      s.q[i][part] =
          row < rows ? __ldcg(reinterpret_cast<const unsigned*>(q + row * stride + column)) : 0;
    }
}

template <int head_dim>
__device__ void score(const warp_state<head_dim>& s, const stage<head_dim>& kv,
                      float (&scores)[step_tokens / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 16 * 8 + lane % 8, side = lane / 8 % 2;
#pragma unroll
  for (int i = 0; i < head_dim / 16; ++i)
#pragma unroll
    for (int pair = 0; pair < step_tokens / 16; ++pair) {
      unsigned k[4];
      load_matrices(k, kv.keys + chunk_place<head_dim>(pair * 16 + row, i * 2 + side));
      multiply_add(scores[pair * 2], s.q[i], k[0], k[1]);
      multiply_add(scores[pair * 2 + 1], s.q[i], k[2], k[3]);
    }
}

template <int head_dim>
__device__ void weigh(warp_state<head_dim>& s, float (&scores)[step_tokens / 8][4], float scale,
                      bool masked, int first_position, const int (&own_position)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float most = s.largest[row];
#pragma unroll
    for (int tile = 0; tile < step_tokens / 8; ++tile)
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        float& value = scores[tile][row * 2 + side];
        value *= scale;
        if (masked && first_position + tile * 8 + lane % 4 * 2 + side > own_position[row])
          value = -INFINITY;
        most = fmaxf(most, value);
      }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    const float shrink = power_of_two(s.largest[row] - most);
    s.largest[row] = most;
    s.total[row] *= shrink;
#pragma unroll
    for (int tile = 0; tile < step_tokens / 8; ++tile)
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        float& value = scores[tile][row * 2 + side];
        value = power_of_two(value - most);
        s.total[row] += value;
      }
#pragma unroll
    for (int tile = 0; tile < head_dim / 8; ++tile) {
      s.sums[tile][row * 2] *= shrink;
      s.sums[tile][row * 2 + 1] *= shrink;
    }
  }
}

template <int head_dim>
__device__ void add_values(warp_state<head_dim>& s, const float (&weights)[step_tokens / 8][4],
                           const stage<head_dim>& kv) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 8 % 2 * 8 + lane % 8, side = lane / 16;
#pragma unroll
  for (int i = 0; i < step_tokens / 16; ++i) {
    const unsigned p[4] = {pack_bf16(weights[2 * i][0], weights[2 * i][1]),
                           pack_bf16(weights[2 * i][2], weights[2 * i][3]),
                           pack_bf16(weights[2 * i + 1][0], weights[2 * i + 1][1]),
                           pack_bf16(weights[2 * i + 1][2], weights[2 * i + 1][3])};
#pragma unroll
    for (int pair = 0; pair < head_dim / 16; ++pair) {
      unsigned v[4];
      load_matrices_transposed(v, kv.values + chunk_place<head_dim>(i * 16 + row, pair * 2 + side));
      multiply_add(s.sums[pair * 2], p, v[0], v[1]);
      multiply_add(s.sums[pair * 2 + 1], p, v[2], v[3]);
    }
  }
}

template <int head_dim>
__global__ void __launch_bounds__(threads)
    tile_kernel(attention_call c, const attention_tile* tiles) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto* stages = reinterpret_cast<stage<head_dim>*>(shared);
  const attention_tile tile = tiles[blockIdx.y];
  wait_for_previous();
  let_next_start();
  const std::uint64_t head = blockIdx.x, kv_head = blockIdx.x / (c.heads / c.kv_heads);
  const std::uint64_t stride = std::uint64_t{c.heads} * head_dim;
  const std::uint64_t first =
      static_cast<std::uint64_t>(tile.first_token) * stride + head * head_dim;
  const std::int32_t* table = c.tables + tile.table;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int count = tile.position + tile.token_count;
  const int own_position[2] = {tile.position + warp * 16 + lane / 4,
                               tile.position + warp * 16 + lane / 4 + 8};
  fetch<head_dim>(stages[0], c, table, kv_head, 0, count);
  warp_state<head_dim> state;
  load_queries<head_dim>(state, static_cast<const bf16*>(c.q) + first, stride, warp * 16,
                         tile.token_count);
  const int steps = (count + step_tokens - 1) / step_tokens;
  for (int i = 0; i < steps; ++i) {
    if (i + 1 < steps) {
      fetch<head_dim>(stages[(i + 1) % 2], c, table, kv_head, (i + 1) * step_tokens, count);
      asm volatile("cp.async.wait_group 1;");
    } else {
      asm volatile("cp.async.wait_group 0;");
    }
    __syncthreads();
    const stage<head_dim>& kv = stages[i % 2];
    float scores[step_tokens / 8][4] = {};
    score<head_dim>(state, kv, scores);
    const bool masked = (i + 1) * step_tokens > tile.position + warp * 16;
    weigh<head_dim>(state, scores, c.scale * log2_e, masked, i * step_tokens, own_position);
    add_values<head_dim>(state, scores, kv);
    __syncthreads();
  }
  write_attended<head_dim>([&](int part, int i) { return state.sums[part][i]; }, state.total,
                           static_cast<bf16*>(c.out) + first, stride, warp * 16, tile.token_count);
}

} // namespace

void tile_attention(const attention_call& call, const attention_tile* tiles, std::uint32_t count,
                    cudaStream_t stream) {
  const dim3 grid(call.heads, count);
  if (call.head_dim == 64)
    launch(tile_kernel<64>, {grid, dim3(threads), 2 * sizeof(stage<64>)}, stream, call, tiles);
  else
    launch(tile_kernel<128>, {grid, dim3(threads), 2 * sizeof(stage<128>)}, stream, call, tiles);
}

void prepare_attention() {
  cuda_check(cudaFuncSetAttribute(tile_kernel<128>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(2 * sizeof(stage<128>))));
  if (wgmma_runs_here())
    prepare_warpgroup_attention();
}

} // namespace tokenrouter::gpu
