#pragma once

#include "gpu/kernels/launch.cuh"

/// How thread blocks of the persistent kernel hand results to each other: every 32-bit word tells
/// by itself whether it is there, so that a reader needs one trip to memory and no barrier.
///
///  - Pairs of bf16 are `absent_word` until written. Every layer has words of its own, and launches
///    take turns with two sets: each clears the other set's, which the next one uses.
///  - Floats carry a tag of the layer in their two lowest bits; the next layer writes over them.
///    It can't before everybody has read them, since each phase needs the results of all thread
///    blocks. Between launches no tag is layer 0's.
namespace tokenrouter::gpu {

constexpr unsigned absent_word = 0xffffffffu; ///< two NaN that no computation leaves

__device__ inline unsigned tag_of_layer(unsigned layer) {
  return layer == 0 ? 0 : 1 + layer % 2;
}

__device__ inline uint4 read_shared_words(const void* p) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
__device__ inline uint2 read_shared_pair(const void* p) {
  uint2 v;
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(p)
               : "memory");
  return v;
}
__device__ inline unsigned read_shared_word(const void* p) {
  unsigned v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void write_shared_word(void* p, unsigned v) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/// Whether words are there.
struct written_words {
  __device__ bool operator()(unsigned v) const { return v != absent_word; }
};
struct tagged_words {
  unsigned tag;
  __device__ bool operator()(unsigned v) const { return (v & 3u) == tag; }
};

template <class Ready>
__device__ bool all_ready(const Ready& ready, const uint4& v) {
  return ready(v.x) && ready(v.y) && ready(v.z) && ready(v.w);
}

/// Reads 16 bytes each from the places that `at` tells, once all are there; zeros where none are
/// wanted. What came too early is asked for again together, not one after another.
template <int count, class Ready, class Wanted, class At>
__device__ void await_words(uint4 (&v)[count], const Ready& ready, const Wanted& wanted,
                            const At& at) {
  bool all;
  do {
#pragma unroll
    for (int i = 0; i < count; ++i)
      v[i] = wanted(i) ? read_shared_words(at(i)) : make_uint4(0, 0, 0, 0);
    all = true;
#pragma unroll
    for (int i = 0; i < count; ++i)
      all = all && (!wanted(i) || all_ready(ready, v[i]));
  } while (!all);
}

__device__ inline void write_bf16_pair(unsigned* at, float low, float high) {
  const unsigned v = pack_bf16(low, high);
  write_shared_word(at, v == absent_word ? 0x7fff7fffu : v);
}

__device__ inline void write_tagged_pair(float* at, float a, float b, unsigned tag) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(at),
               "r"((__float_as_uint(a) & ~3u) | tag), "r"((__float_as_uint(b) & ~3u) | tag)
               : "memory");
}

} // namespace tokenrouter::gpu
