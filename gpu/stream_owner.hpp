#pragma once

#include <cuda_runtime_api.h>

#include "gpu/cuda_error.hpp"

namespace tokenrouter::gpu {

/// Owned stream; work of one model goes through one.
class stream_owner {
 public:
  stream_owner() { cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~stream_owner() { cudaStreamDestroy(stream_); }
  stream_owner(const stream_owner&) = delete;
  stream_owner& operator=(const stream_owner&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

} // namespace tokenrouter::gpu
