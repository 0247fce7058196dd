#pragma once

#include <cuda_runtime_api.h>

#include "gpu/cuda_error.hpp"

namespace tokenrouter::gpu {

/// Owned stream; work of one model goes through one.
class stream_owner {
 public:
  /// `first`: its kernels start before waiting ones of other streams.
  explicit stream_owner(bool first = false) {
    int least = 0, greatest = 0;
    cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    cuda_check(
        cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, first ? greatest : least));
  }
  ~stream_owner() { cudaStreamDestroy(stream_); }
  stream_owner(const stream_owner&) = delete;
  stream_owner& operator=(const stream_owner&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

} // namespace tokenrouter::gpu
