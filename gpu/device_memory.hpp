#pragma once

#include <cstddef>
#include <utility>

#include "runtime/core/error.hpp"

namespace tokenrouter::gpu {

/// Memory of the current device, or pinned memory of the host; owned.
class device_memory {
 public:
  device_memory() = default;
  device_memory(device_memory&& other) noexcept { *this = std::move(other); }
  device_memory& operator=(device_memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(pinned_, other.pinned_);
    return *this;
  }
  ~device_memory();

  /// Error: capacity, with what is free.
  static result<device_memory> allocate(std::size_t bytes);

  /// Of the host, readable and writable by both sides without a copy through another buffer.
  static result<device_memory> allocate_pinned(std::size_t bytes);

  template <class T = std::byte>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool pinned_ = false;
};

} // namespace tokenrouter::gpu
