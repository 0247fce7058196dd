#include "gpu/kernels/attended_rows.cuh"
#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/barriers.cuh"
#include "gpu/kernels/launch.cuh"
#include "gpu/kernels/tensor_map.hpp"
#include "gpu/kernels/warpgroup_math.cuh"

namespace tokenrouter::gpu {
namespace {

/// 128 queries of one head in a thread block, 64 to each of two warpgroups; a warp of the third has
/// the copy engine bring the KV blocks of 128 positions at a time to shared memory, two such steps
/// ahead. Scores of the next step are multiplied while the weights of this one meet their values,
/// and both run while a group works out its weights.
constexpr int groups = 2;
constexpr int group_rows = 64;
constexpr int threads = 128 * (groups + 1);
constexpr int stages = 2;
constexpr int step_tokens = 128;
constexpr int block_tokens = 16;
constexpr int step_blocks = step_tokens / block_tokens;

static_assert(warpgroup_tile_tokens == groups * group_rows);

/// Arrays of 64 dimensions, as warpgroup_math.cuh wants them.
template <int head_dim>
struct tile_memory {
  static constexpr int halves = head_dim / 64;
  bf16 queries[groups][halves][group_rows * 64];
  bf16 keys[stages][halves][step_tokens * 64];
  bf16 values[stages][halves][step_tokens * 64];
  std::uint64_t full_keys[stages], empty_keys[stages];
  std::uint64_t full_values[stages], empty_values[stages];
  std::uint64_t tail; ///< the last values, before rows past the end are cleared
};

constexpr std::size_t alignment_bytes = 1024;

/// Brings the blocks of one step, a box of 16 tokens and 64 dimensions for each lane.
template <int head_dim>
__device__ void bring(bf16 (&to)[head_dim / 64][step_tokens * 64], const CUtensorMap& map,
                      const std::int32_t* table, std::int64_t block_rows, std::int64_t first_row,
                      int blocks, std::uint64_t* barrier) {
  constexpr int halves = head_dim / 64;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0)
    expect_bytes(barrier, static_cast<unsigned>(blocks * block_tokens * head_dim) * 2);
  __syncwarp();
  const int block = lane / halves, half = lane % halves;
  if (block < blocks)
    copy_box(to[half] + block * block_tokens * 64, map, half * 64,
             static_cast<int>(table[block] * block_rows + first_row), barrier);
}

/// The warp that fills shared memory.
template <int head_dim>
__device__ void fill(tile_memory<head_dim>& m, const attention_call& c, const CUtensorMap& map,
                     const std::int32_t* table, int kv_head, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int blocks = (count + block_tokens - 1) / block_tokens;
  const auto rows_of = [](std::uint64_t elements) {
    return static_cast<std::int64_t>(elements / head_dim);
  };
  const std::int64_t block_rows = rows_of(c.kv.block_elements), head_row = kv_head * block_tokens;
  const std::int64_t key_row = rows_of(c.kv.key_offset) + head_row;
  const std::int64_t value_row = rows_of(c.kv.value_offset) + head_row;
  for (int at = 0, step = 0; at < blocks; at += step_blocks, ++step) {
    const int stage = step % stages, here = min(step_blocks, blocks - at);
    const unsigned parity = static_cast<unsigned>(step / stages) & 1;
    await_barrier(m.empty_keys + stage, parity ^ 1);
    bring<head_dim>(m.keys[stage], map, table + at, block_rows, key_row, here, m.full_keys + stage);
    await_barrier(m.empty_values + stage, parity ^ 1);
    const int seen = count - at * block_tokens; // of this step's positions
    const bool cut = seen < step_tokens;
    bring<head_dim>(m.values[stage], map, table + at, block_rows, value_row, here,
                    cut ? &m.tail : m.full_values + stage);
    if (!cut)
      continue;
    // Weights past the end are 0, which undoes all but values that are no numbers.
    await_barrier(&m.tail, 0);
    for (int i = seen * 8 + lane; i < step_tokens * 8; i += 32)
      for (int half = 0; half < head_dim / 64; ++half)
        reinterpret_cast<uint4*>(m.values[stage][half])[i] = make_uint4(0, 0, 0, 0);
    show_writes();
    __syncwarp();
    if (lane == 0)
      arrive(m.full_values + stage);
  }
}

template <int head_dim>
__device__ void put_queries(tile_memory<head_dim>& m, int group, const bf16* q,
                            std::uint64_t stride, int rows) {
  constexpr int chunks = head_dim / 8;
  for (int i = static_cast<int>(threadIdx.x) % 128; i < group_rows * chunks; i += 128) {
    const int row = i / chunks, chunk = i % chunks;
    const uint4 value = row < rows
                            ? __ldcg(reinterpret_cast<const uint4*>(q + row * stride) + chunk)
                            : make_uint4(0, 0, 0, 0);
    reinterpret_cast<uint4*>(m.queries[group][chunk / 8])[row * 8 + (chunk % 8 ^ row % 8)] = value;
  }
  show_writes();
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

/// The running softmax of a thread's two rows.
struct softmax_rows {
  float largest[2] = {-INFINITY, -INFINITY}; ///< scores
  float total[2] = {0, 0};                   ///< this thread's part
  float shrink[2] = {0, 0};                  ///< of what was summed before
};

/// Scores become weights. `scale`: to base-2 logarithms; `last`: the last position, counted from
/// this step's first, that each row sees.
__device__ inline void weigh(softmax_rows& s, float (&scores)[64], float scale, bool masked,
                             const int (&last)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float most = s.largest[row];
#pragma unroll
    for (int j = 0; j < 16; ++j)
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        float& value = scores[4 * j + 2 * row + side];
        if (masked && 8 * j + lane % 4 * 2 + side > last[row])
          value = -INFINITY;
        most = fmaxf(most, value);
      }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    s.shrink[row] = power_of_two((s.largest[row] - most) * scale);
    s.largest[row] = most;
    const float bound = most * scale;
    float total = s.total[row] * s.shrink[row];
#pragma unroll
    for (int j = 0; j < 16; ++j)
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        float& value = scores[4 * j + 2 * row + side];
        value = power_of_two(fmaf(value, scale, -bound));
        total += value;
      }
    s.total[row] = total;
  }
}

__device__ inline void pack(const float (&weights)[64], unsigned (&packed)[8][4]) {
#pragma unroll
  for (int i = 0; i < 32; ++i)
    packed[i / 4][i % 4] = pack_bf16(weights[2 * i], weights[2 * i + 1]);
}

template <int n>
__device__ void shrink_sums(float (&sums)[n], const softmax_rows& s) {
#pragma unroll
  for (int i = 0; i < n; ++i)
    sums[i] *= s.shrink[i / 2 % 2];
}

template <int head_dim>
__device__ void multiply_keys(float (&scores)[64], const tile_memory<head_dim>& m, int group,
                              int stage) {
#pragma unroll
  for (int i = 0; i < head_dim / 16; ++i)
    shared_product(scores, along_k(shared_address(m.queries[group][i / 4])) + i % 4 * 2,
                   along_k(shared_address(m.keys[stage][i / 4])) + i % 4 * 2, i > 0);
}

template <int head_dim>
__device__ void multiply_values(float (&sums)[head_dim / 2], const unsigned (&weights)[8][4],
                                const tile_memory<head_dim>& m, int stage) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    register_product(sums, weights[i],
                     across_k(shared_address(m.values[stage]), sizeof m.values[stage][0]) +
                         i * (16 * 128 / 16));
}

template <int head_dim>
__device__ void attend(tile_memory<head_dim>& m, const attention_call& c,
                       const attention_tile& tile, int group, int steps) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const std::uint64_t stride = std::uint64_t{c.heads} * head_dim;
  const std::uint64_t first =
      static_cast<std::uint64_t>(tile.first_token + group * group_rows) * stride +
      std::uint64_t{blockIdx.x} * head_dim;
  const int rows = tile.token_count - group * group_rows;
  put_queries<head_dim>(m, group, static_cast<const bf16*>(c.q) + first, stride, rows);
  const float scale = c.scale * log2_e;
  const int first_position = tile.position + group * group_rows;
  const int own = first_position + warp * 16 + lane / 4;
  softmax_rows state;
  float sums[head_dim / 2] = {}, scores[64];
  unsigned weights[8][4];
  const auto weigh_step = [&](int step) {
    const int from = step * step_tokens;
    const int last[2] = {own - from, own + 8 - from};
    weigh(state, scores, scale, from + step_tokens - 1 > first_position, last);
  };
  const auto release = [&](std::uint64_t* barrier) {
    if (lane == 0)
      arrive(barrier);
  };

  await_barrier(m.full_keys, 0);
  begin_products();
  multiply_keys<head_dim>(scores, m, group, 0);
  commit_products();
  await_products<0>();
  hold(scores);
  release(m.empty_keys);
  weigh_step(0);
  pack(scores, weights);
  for (int step = 1; step < steps; ++step) {
    const int stage = step % stages, before = (step - 1) % stages;
    await_barrier(m.full_keys + stage, static_cast<unsigned>(step / stages) & 1);
    await_barrier(m.full_values + before, static_cast<unsigned>((step - 1) / stages) & 1);
    begin_products();
    multiply_keys<head_dim>(scores, m, group, stage);
    commit_products();
    multiply_values<head_dim>(sums, weights, m, before);
    commit_products();
    await_products<1>();
    hold(scores);
    release(m.empty_keys + stage);
    weigh_step(step);
    await_products<0>();
    hold(sums);
    release(m.empty_values + before);
    shrink_sums(sums, state);
    pack(scores, weights);
  }
  await_barrier(m.full_values + (steps - 1) % stages,
                static_cast<unsigned>((steps - 1) / stages) & 1);
  begin_products();
  multiply_values<head_dim>(sums, weights, m, (steps - 1) % stages);
  commit_products();
  await_products<0>();
  hold(sums);
  write_attended<head_dim>([&](int part, int i) { return sums[4 * part + i]; }, state.total,
                           static_cast<bf16*>(c.out) + first, stride, warp * 16, rows);
}

template <int head_dim>
__global__ void __launch_bounds__(threads, 1)
    warpgroup_kernel(attention_call c, const attention_tile* tiles,
                     const __grid_constant__ CUtensorMap map) {
  if constexpr (!has_warpgroups)
    return; // no other target has the instructions of what follows
  extern __shared__ unsigned char shared[];
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(shared);
  auto& m = *reinterpret_cast<tile_memory<head_dim>*>(
      shared + (alignment_bytes - place % alignment_bytes) % alignment_bytes);
  const attention_tile tile = tiles[blockIdx.y];
  const int count = tile.position + tile.token_count;
  const bool both = tile.token_count > group_rows;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      init_barrier(m.full_keys + i, 1);
      init_barrier(m.full_values + i, 1);
      init_barrier(m.empty_keys + i, both ? 8 : 4); // a warp each
      init_barrier(m.empty_values + i, both ? 8 : 4);
    }
    init_barrier(&m.tail, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  wait_for_previous();
  let_next_start();
  const int group = static_cast<int>(threadIdx.x) / 128;
  if (group == groups) {
    give_registers<24>();
    if (threadIdx.x / 32 % 4 == 0)
      fill<head_dim>(m, c, map, c.tables + tile.table,
                     static_cast<int>(blockIdx.x / (c.heads / c.kv_heads)), count);
  } else {
    take_registers<240>();
    if (group == 0 || both)
      attend<head_dim>(m, c, tile, group, (count + step_tokens - 1) / step_tokens);
  }
}

/// The pool as rows of one token of one head. How many there are is not said: coordinates are
/// 32-bit, and block tables hold blocks of the pool only.
CUtensorMap map_of(const kv_view& kv, std::uint32_t head_dim) {
  return tensor_map(kv.pool, 0x7fffffff, head_dim, block_tokens);
}

template <int head_dim>
void run(const attention_call& call, const attention_tile* tiles, std::uint32_t count,
         cudaStream_t stream) {
  const launch_shape shape{dim3(call.heads, count), dim3(threads),
                           sizeof(tile_memory<head_dim>) + alignment_bytes};
  launch(warpgroup_kernel<head_dim>, shape, stream, call, tiles, map_of(call.kv, head_dim));
}

template <int head_dim>
void allow_memory() {
  cuda_check(
      cudaFuncSetAttribute(warpgroup_kernel<head_dim>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(sizeof(tile_memory<head_dim>) + alignment_bytes)));
}

} // namespace

void warpgroup_attention(const attention_call& call, const attention_tile* tiles,
                         std::uint32_t count, cudaStream_t stream) {
  if (call.head_dim == 64)
    run<64>(call, tiles, count, stream);
  else
    run<128>(call, tiles, count, stream);
}

void prepare_warpgroup_attention() {
  allow_memory<64>();
  allow_memory<128>();
}

} // namespace tokenrouter::gpu
