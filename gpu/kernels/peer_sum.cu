#include "gpu/kernels/peer_sum.hpp"

#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr unsigned threads = 256;
constexpr unsigned quads_per_thread = 2; ///< before more blocks are used up to their limit

/// Looks at a flag between two looks at the host's word, which takes long.
constexpr unsigned looks_per_stop_check = 1024;

__device__ void tell(unsigned* flag, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ unsigned ask(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ void wait_for(const unsigned* flag, unsigned value, const unsigned* stop) {
  for (unsigned looks = 1; static_cast<int>(ask(flag) - value) < 0; ++looks)
    if (looks % looks_per_stop_check == 0 && *static_cast<const volatile unsigned*>(stop) != 0)
      return;
}

/// The values of a member in the area of another; the two halves take turns. A member can be at
/// most one sum ahead of another: it needs the other's values, and kernels of a stream follow each
/// other.
__device__ float4* place_of(const peer_area& area, const peer_sum_call& c, unsigned sum,
                            std::uint32_t member) {
  return reinterpret_cast<float4*>(area.values + std::uint64_t{(sum & 1) * c.members + member} *
                                                     peer_sum_floats_max);
}

__global__ void __launch_bounds__(threads) sum_kernel(peer_sum_call c) {
  wait_for_previous();
  let_next_start();
  const unsigned sum = *static_cast<volatile unsigned*>(c.progress) + 1;
  auto* values = reinterpret_cast<float4*>(c.values);
  const unsigned quads = c.count / 4, step = gridDim.x * threads;
  const unsigned first = blockIdx.x * threads + threadIdx.x;

  for (unsigned i = first; i < quads; i += step) {
    const float4 mine = __ldcg(values + i);
    for (std::uint32_t peer = 0; peer < c.members; ++peer)
      if (peer != c.index)
        place_of(c.areas[peer], c, sum, c.index)[i] = mine;
  }
  __syncthreads();
  if (threadIdx.x < c.members && threadIdx.x != c.index) {
    __threadfence_system();
    tell(c.areas[threadIdx.x].flags + c.index * peer_sum_blocks_max + blockIdx.x, sum);
    wait_for(c.areas[c.index].flags + threadIdx.x * peer_sum_blocks_max + blockIdx.x, sum, c.stop);
  }
  __syncthreads();
  for (unsigned i = first; i < quads; i += step) {
    const float4 mine = __ldcg(values + i);
    float4 total = make_float4(0, 0, 0, 0);
    for (std::uint32_t member = 0; member < c.members; ++member) {
      const float4 part =
          member == c.index ? mine : __ldcg(place_of(c.areas[c.index], c, sum, member) + i);
      total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
    }
    values[i] = total;
  }
  // The last block of all counts the sum as done; by then all have read the count.
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(c.progress + 1, 1) == gridDim.x - 1) {
    c.progress[1] = 0;
    c.progress[0] = sum;
  }
}

} // namespace

std::size_t peer_area_bytes(std::uint32_t members) {
  return (std::size_t{2} * members * peer_sum_floats_max + members * peer_sum_blocks_max) *
         sizeof(float);
}

peer_area lay_out_peer_area(void* memory, std::uint32_t members) {
  auto* values = static_cast<float*>(memory);
  return {values,
          reinterpret_cast<unsigned*>(values + std::size_t{2} * members * peer_sum_floats_max)};
}

void peer_sum(const peer_sum_call& call, cudaStream_t stream) {
  const unsigned quads = call.count / 4;
  const unsigned wanted = (quads + threads * quads_per_thread - 1) / (threads * quads_per_thread);
  const unsigned blocks = wanted < peer_sum_blocks_max ? wanted : peer_sum_blocks_max;
  launch(sum_kernel, {blocks, threads}, stream, call);
}

} // namespace tokenrouter::gpu
