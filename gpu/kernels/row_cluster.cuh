#pragma once

#include <cooperative_groups.h>

/// The thread blocks that share a row of logits: a cluster, or, for targets without clusters, one
/// block by the same name.
namespace tokenrouter::gpu {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900

namespace cg {

struct cluster_group {
  __device__ void sync() const { __syncthreads(); }
  __device__ unsigned num_blocks() const { return 1; }
  __device__ unsigned block_rank() const { return 0; }
  template <class T>
  __device__ T* map_shared_rank(T* p, unsigned) const {
    return p;
  }
};

__device__ inline cluster_group this_cluster() {
  return {};
}

} // namespace cg

#else

namespace cg = cooperative_groups;

#endif

} // namespace tokenrouter::gpu
