#pragma once

#include <cstdint>
#include <memory>

#include <cuda_runtime_api.h>

#include "gpu/kernels/peer_sum.hpp"
#include "gpu/nccl/communicator.hpp"

namespace tokenrouter::gpu {

/// Members of a group that can write into each other's memory: cards of one host with a direct way
/// (NVLink, or PCIe where the driver allows it), in one process or several (CUDA IPC). Small sums
/// take one kernel, without NCCL.
class peer_group {
 public:
  /// All members of `group` call it together, with their device current. Null, on all of them
  /// alike: some pair has no direct way.
  static std::unique_ptr<peer_group> meet(communicator& group, std::uint32_t device,
                                          cudaStream_t stream);

  virtual ~peer_group() = default;

  /// Enqueues peer_sum. Requires a count that it takes.
  virtual void sum(float* values, std::uint32_t count, cudaStream_t stream) = 0;

  /// Makes kernels that wait for other members end, now and later. Any thread.
  virtual void stop() = 0;
};

} // namespace tokenrouter::gpu
