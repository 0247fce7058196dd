#pragma once

#include <cstddef>
#include <memory>

#include "runtime/core/error.hpp"

namespace tokenrouter::cpu {

/// A block of host memory, aligned to a cache line and held by a tensor of libtorch's CPU
/// allocator. Pages that nobody touches take no memory.
class memory {
 public:
  memory();
  /// Uninitialised. Error: capacity, if the machine will not give so much.
  static result<memory> allocate(std::size_t bytes);

  memory(memory&&) noexcept;
  memory& operator=(memory&&) noexcept;
  ~memory();

  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct tensor;
  std::unique_ptr<tensor> tensor_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Keeps libtorch and its BLAS from starting thread pools beside ours; call before computing.
void limit_library_threads();

} // namespace tokenrouter::cpu
