#pragma once

#include "gpu/kernels/barriers.cuh"
#include "gpu/kernels/launch.cuh"

/// A ring of stages in shared memory, filled by one warp with bulk copies and read by all others.
namespace tokenrouter::gpu {

constexpr int persistent_warps = 8; ///< that compute; one more fills the ring
constexpr int persistent_threads = 32 * persistent_warps;
constexpr int ring_stages_max = 12;

/// A warp takes 64 elements of every segment of k. A stage holds 8 rows of a weight matrix, two
/// segments wide: the fewer and longer its copies are, the faster they come. Rows are half a line
/// of banks apart.
constexpr int segment_k = 64 * persistent_warps;
constexpr int stage_segments = 2;
constexpr int stage_k = stage_segments * segment_k;
constexpr int stage_row_bytes = stage_k * 2 + 64;
constexpr int stage_bytes = 8 * stage_row_bytes;

/// Data that is read once: it shall not push activations out of the second-level cache.
__device__ inline std::uint64_t read_once_policy() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline void bulk_copy(void* to, const void* from, unsigned bytes, std::uint64_t* barrier,
                                 std::uint64_t policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
               "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
               : "memory");
}

struct ring {
  unsigned char* stages;
  std::uint64_t* full;
  std::uint64_t* empty;
  int count;
  int stage = 0;
  unsigned parity = 0;

  __device__ void next() {
    if (++stage == count) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ unsigned char* here() const { return stages + stage * stage_bytes; }

  /// Readers, whole warps.
  __device__ const unsigned char* await_full() const {
    await_barrier(full + stage, parity);
    return here();
  }
  __device__ void release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      arrive(empty + stage);
    next();
  }

  /// The same for the next `wanted` stages at once, at most 32: a lane each.
  __device__ void await_full(int wanted) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < wanted)
      await_barrier(full + place(lane), parity ^ (stage + lane >= count));
    __syncwarp();
  }
  __device__ const unsigned char* ahead(int i) const { return stages + place(i) * stage_bytes; }
  __device__ void release(int read) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    __syncwarp();
    if (lane < read)
      arrive(empty + place(lane));
    parity ^= stage + read >= count;
    stage = place(read);
  }
  __device__ int place(int i) const { return stage + i < count ? stage + i : stage + i - count; }

  /// The warp that fills; after it come copies of so many bytes, then `next`.
  __device__ void begin(unsigned bytes) const {
    await_barrier(empty + stage, parity ^ 1);
    if (threadIdx.x % 32 == 0)
      expect_bytes(full + stage, bytes);
    __syncwarp();
  }
};

/// Among the warps that compute.
__device__ inline void sync_readers() {
  asm volatile("bar.sync 1, %0;" ::"n"(persistent_threads) : "memory");
}

} // namespace tokenrouter::gpu
