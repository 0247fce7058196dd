#pragma once

#include <cstddef>

namespace tokenrouter::gpu {

/// Hands out aligned pieces of a memory, or, with no memory, null pointers: only counts them.
class arena {
 public:
  explicit arena(std::byte* base) : base_(base) {}

  void* take(std::size_t bytes) {
    constexpr std::size_t alignment = 256;
    void* piece = base_ ? base_ + used_ : nullptr;
    used_ += (bytes + alignment - 1) / alignment * alignment;
    return piece;
  }
  template <class T>
  T* take(std::size_t count) {
    return static_cast<T*>(take(count * sizeof(T)));
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

} // namespace tokenrouter::gpu
