#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "gpu/cuda_error.hpp"
#include "gpu/kernels/kernel_target.hpp"
#include "gpu/kernels/launch.hpp"

/// How kernels of one step follow each other. Where the target knows programmatic launches, a
/// kernel may start before the one in front of it has ended; until `wait_for_previous`, which every
/// thread passes, it reads nothing but weights and what was there before the wave. It lets the next
/// one start after that: earlier was no faster. Activations are read past the first-level cache,
/// which another kernel's start does not clean.
namespace tokenrouter::gpu {

using bf16 = __nv_bfloat16;

__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

struct launch_shape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  unsigned cluster = 1;     ///< thread blocks of a cluster, along x; more than 1: has_sm_90 alone
  bool cooperative = false; ///< all thread blocks run at once; starts after the one in front
};

template <class T>
struct same {
  using type = T;
};

/// Errors of a launch are faults of ours: checked.
template <class... P>
void launch(void (*kernel)(P...), const launch_shape& shape, cudaStream_t stream,
            typename same<P>::type... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (shape.cooperative) {
    attributes[count].id = cudaLaunchAttributeCooperative;
    attributes[count++].val.cooperative = 1;
  }
  if (starts_early(target_here(), shape.cooperative, kernels_overlap())) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = shape.cluster;
    attributes[count].val.clusterDim.y = 1;
    attributes[count++].val.clusterDim.z = 1;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  cuda_check(cudaLaunchKernelEx(&config, kernel, arguments...));
}

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(bf16 x) {
  return __bfloat162float(x);
}

template <class T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}

/// Reads what an earlier kernel of the step wrote.
template <class T>
__device__ T read_activation(const T* p) {
  return __ldcg(p);
}
template <>
__device__ inline bf16 read_activation<bf16>(const bf16* p) {
  const unsigned short bits = __ldcg(reinterpret_cast<const unsigned short*>(p));
  return __ushort_as_bfloat16(bits);
}

/// 16 bytes that are read once: weights, which nothing writes, …
__device__ inline uint4 stream_weights(const bf16* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

/// … or keys and values, which an earlier kernel may have written.
__device__ inline uint4 stream_activations(const bf16* p) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

constexpr float log2_e = 1.44269504088896341f;

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

/// Sum over a thread block of whole warps, at most 32; the same for every thread, in a fixed order.
/// `scratch`: 32 floats of shared memory, free again after the next barrier.
__device__ inline float block_sum(float x, float* scratch) {
  x = warp_sum(x);
  const int warps = static_cast<int>(blockDim.x) / 32;
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = x;
  __syncthreads();
  float total = 0;
  for (int i = 0; i < warps; ++i)
    total += scratch[i];
  return total;
}

/// D += A · B, 16 × 8 × 16, bf16 operands, float32 sums.
__device__ inline void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                    unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two floats rounded to bf16, `low` in the low half.
__device__ inline unsigned pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

/// Four neighbours at once. Requires alignment to four of them.
template <class T>
__device__ void put_quad(T* to, const float4& v) {
  if constexpr (sizeof(T) == 2)
    *reinterpret_cast<uint2*>(to) = make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
  else
    *reinterpret_cast<float4*>(to) = v;
}

/// silu(gate) · up, for results that are rounded to bf16.
__device__ inline float swiglu_of(float gate, float up) {
  return gate / (1.0f + __expf(-gate)) * up;
}

} // namespace tokenrouter::gpu
