#pragma once

#include <cstdint>
#include <utility>

#include <cuda_runtime_api.h>

#include "gpu/device_memory.hpp"
#include "runtime/core/error.hpp"

/// Device memory of one model that another reads or writes: on the same device or on one that it
/// has a way to, in this process or, through CUDA IPC, in another of this host.
namespace tokenrouter::gpu {

/// Where memory is, for others. Travels as its bytes, which are whole floats.
struct memory_card {
  std::uint64_t host = 0;
  std::uint64_t process = 0; ///< process_stamp()
  std::uint64_t address = 0; ///< in that process
  std::int32_t device = 0;
  std::uint32_t usable = 0; ///< others can map it
  cudaIpcMemHandle_t handle{};
};

/// Of memory on that device; not usable where there is none, or no IPC.
memory_card card_of(const device_memory& memory, std::uint32_t device);

/// The memory of a card, for kernels and copies of the current device; unmapped at the end.
class mapped_memory {
 public:
  /// Error: unavailable (another host, no way between the devices, its owner is gone). In one
  /// process the owner of the memory must outlive all use of it.
  static result<mapped_memory> map(const memory_card& card, std::uint32_t current_device);

  mapped_memory(mapped_memory&& other) noexcept { *this = std::move(other); }
  mapped_memory& operator=(mapped_memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(opened_, other.opened_);
    return *this;
  }
  ~mapped_memory();

  void* data() const { return data_; }

 private:
  mapped_memory() = default;
  void* data_ = nullptr;
  bool opened_ = false; ///< through IPC
};

} // namespace tokenrouter::gpu
