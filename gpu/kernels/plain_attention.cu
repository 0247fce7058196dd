#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr int threads = 128;
constexpr int head_dim_max = 512;
constexpr int dims_of_thread = head_dim_max / threads;

template <class T>
__device__ const T* place_of(const attention_call& c, const std::int32_t* table, int position,
                             std::uint64_t offset, std::uint64_t kv_head) {
  const std::uint64_t block = static_cast<std::uint64_t>(table[position / 16]);
  return static_cast<const T*>(c.kv.pool) + block * c.kv.block_elements + offset +
         (kv_head * 16 + static_cast<unsigned>(position) % 16) * c.head_dim;
}

__device__ float block_max(float x, float* scratch) {
  for (int step = 16; step > 0; step /= 2)
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = x;
  __syncthreads();
  float most = scratch[0];
  for (int i = 1; i < threads / 32; ++i)
    most = fmaxf(most, scratch[i]);
  __syncthreads();
  return most;
}

/// One thread block for each head of each token; 128 positions at a time.
template <class T>
__global__ void plain_kernel(attention_call c, const std::int32_t* positions,
                             const std::int32_t* tables_of) {
  __shared__ float query[head_dim_max], weights[threads], scratch[32];
  wait_for_previous();
  let_next_start();
  const std::uint64_t row = (std::uint64_t{blockIdx.x} * c.heads + blockIdx.y) * c.head_dim;
  const std::uint64_t kv_head = blockIdx.y / (c.heads / c.kv_heads);
  const int count = positions[blockIdx.x] + 1;
  const std::int32_t* table = c.tables + tables_of[blockIdx.x];
  const int me = static_cast<int>(threadIdx.x), head_dim = static_cast<int>(c.head_dim);
  for (int d = me; d < head_dim; d += threads)
    query[d] = to_float(read_activation(static_cast<const T*>(c.q) + row + d)) * c.scale;
  __syncthreads();
  float sums[dims_of_thread] = {}, largest = -INFINITY, total = 0;
  for (int base = 0; base < count; base += threads) {
    float score = -INFINITY;
    if (base + me < count) {
      const T* key = place_of<T>(c, table, base + me, c.kv.key_offset, kv_head);
      score = 0;
      for (int d = 0; d < head_dim; ++d)
        score = fmaf(query[d], to_float(read_activation(key + d)), score);
    }
    const float most = fmaxf(largest, block_max(score, scratch));
    const float shrink = expf(largest - most);
    const float weight = expf(score - most);
    weights[me] = weight;
    total = total * shrink + block_sum(weight, scratch);
    largest = most;
    __syncthreads();
    const int here = min(threads, count - base);
    for (int i = 0; i < dims_of_thread; ++i) {
      const int d = me + i * threads;
      if (d >= head_dim)
        break;
      float sum = sums[i] * shrink;
      for (int p = 0; p < here; ++p)
        sum = fmaf(weights[p],
                   to_float(read_activation(
                       place_of<T>(c, table, base + p, c.kv.value_offset, kv_head) + d)),
                   sum);
      sums[i] = sum;
    }
    __syncthreads();
  }
  for (int i = 0; i < dims_of_thread; ++i)
    if (const int d = me + i * threads; d < head_dim)
      static_cast<T*>(c.out)[row + d] = from_float<T>(sums[i] / total);
}

} // namespace

template <class T>
void plain_attention(const attention_call& call, const std::int32_t* positions,
                     const std::int32_t* tables_of, std::uint32_t tokens, cudaStream_t stream) {
  launch(plain_kernel<T>, {dim3(tokens, call.heads), dim3(threads)}, stream, call, positions,
         tables_of);
}

template void plain_attention<float>(const attention_call&, const std::int32_t*,
                                     const std::int32_t*, std::uint32_t, cudaStream_t);
template void plain_attention<bf16>(const attention_call&, const std::int32_t*, const std::int32_t*,
                                    std::uint32_t, cudaStream_t);

} // namespace tokenrouter::gpu
