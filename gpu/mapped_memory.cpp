#include "gpu/mapped_memory.hpp"

#include <array>
#include <functional>
#include <string>

#include <unistd.h>

#include "runtime/core/process_stamp.hpp"

namespace tokenrouter::gpu {
namespace {

std::uint64_t host_number() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return std::hash<std::string>{}(name.data());
}

} // namespace

memory_card card_of(const device_memory& memory, std::uint32_t device) {
  static_assert(sizeof(memory_card) % sizeof(float) == 0);
  memory_card card;
  card.host = host_number();
  card.process = process_stamp();
  card.address = reinterpret_cast<std::uint64_t>(memory.as());
  card.device = static_cast<std::int32_t>(device);
  card.usable = memory.bytes() > 0 && cudaIpcGetMemHandle(&card.handle, memory.as()) == cudaSuccess;
  cudaGetLastError(); // a card without IPC is no fault
  return card;
}

result<mapped_memory> mapped_memory::map(const memory_card& card, std::uint32_t current_device) {
  if (!card.usable)
    return fail(errc::unavailable, "its device memory is not shared");
  if (card.host != host_number())
    return fail(errc::unavailable, "its device memory is on another host");
  mapped_memory mapped;
  cudaError_t status = cudaSuccess;
  if (card.process == process_stamp()) {
    if (card.device != static_cast<std::int32_t>(current_device))
      status = cudaDeviceEnablePeerAccess(card.device, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled)
      status = cudaSuccess;
    mapped.data_ = reinterpret_cast<void*>(card.address);
  } else {
    status = cudaIpcOpenMemHandle(&mapped.data_, card.handle, cudaIpcMemLazyEnablePeerAccess);
    mapped.opened_ = status == cudaSuccess;
  }
  cudaGetLastError();
  if (status != cudaSuccess)
    return fail(errc::unavailable,
                std::string("its device memory can't be mapped: ") + cudaGetErrorString(status));
  return mapped;
}

mapped_memory::~mapped_memory() {
  if (opened_)
    cudaIpcCloseMemHandle(data_);
}

} // namespace tokenrouter::gpu
