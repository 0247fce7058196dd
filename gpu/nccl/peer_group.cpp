#include "gpu/nccl/peer_group.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <unistd.h>

#include "gpu/cuda_error.hpp"
#include "gpu/device_memory.hpp"

namespace tokenrouter::gpu {
namespace {

/// What a member tells the others of itself, in whole floats.
struct peer_card {
  std::uint64_t host = 0;
  std::uint64_t process = 0;
  std::uint64_t address = 0; ///< of its area, in its own process
  std::int32_t device = 0;
  std::uint32_t usable = 0; ///< it has an area, and could reach those of all others
  cudaIpcMemHandle_t handle{};
};
static_assert(sizeof(peer_card) % sizeof(float) == 0);

std::uint64_t host_number() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return std::hash<std::string>{}(name.data());
}

/// Every member's card, by way of the group.
std::vector<peer_card> exchange(communicator& group, const peer_card& mine, cudaStream_t stream) {
  const std::size_t floats = sizeof(peer_card) / sizeof(float);
  std::vector<peer_card> all(group.count());
  auto memory = device_memory::allocate(all.size() * sizeof(peer_card));
  if (!memory)
    return {};
  auto* here = memory->as<peer_card>();
  cuda_check(cudaMemcpy(here + group.index(), &mine, sizeof mine, cudaMemcpyHostToDevice));
  group.gather(memory->as<float>(), floats, stream);
  if (!group.wait(stream))
    return {};
  cuda_check(cudaMemcpy(all.data(), here, all.size() * sizeof(peer_card), cudaMemcpyDeviceToHost));
  return all;
}

class mapped_peers final : public peer_group {
 public:
  ~mapped_peers() override {
    for (void* area : opened_)
      cudaIpcCloseMemHandle(area);
  }

  bool prepare(const communicator& group, cudaStream_t stream) {
    auto area = device_memory::allocate(peer_area_bytes(group.count()) + sizeof(unsigned[2]));
    auto stop = device_memory::allocate_pinned(sizeof(unsigned));
    if (!area || !stop)
      return false;
    area_ = std::move(*area);
    stop_ = std::move(*stop);
    *stop_.as<unsigned>() = 0;
    // Not the whole device: other models of this process may be recording graphs.
    cuda_check(cudaMemsetAsync(area_.as(), 0, area_.bytes(), stream));
    cuda_check(cudaStreamSynchronize(stream));
    call_.index = group.index();
    call_.members = group.count();
    call_.progress = reinterpret_cast<unsigned*>(area_.as() + peer_area_bytes(group.count()));
    call_.stop = stop_.as<unsigned>();
    return true;
  }

  peer_card card(std::uint32_t device) const {
    peer_card mine;
    mine.host = host_number();
    mine.process = static_cast<std::uint64_t>(getpid());
    mine.address = reinterpret_cast<std::uint64_t>(area_.as());
    mine.device = static_cast<std::int32_t>(device);
    mine.usable = area_.bytes() > 0 && cudaIpcGetMemHandle(&mine.handle, area_.as()) == cudaSuccess;
    cudaGetLastError(); // a card without IPC is no fault
    return mine;
  }

  /// Maps the area of a member; false if there is no way to it.
  bool reach(const peer_card& mine, const peer_card& other, std::uint32_t member) {
    void* area = reinterpret_cast<void*>(other.address);
    if (member != call_.index) {
      if (!other.usable || other.host != mine.host)
        return false;
      cudaError_t status = cudaSuccess;
      if (other.process == mine.process) {
        status = cudaDeviceEnablePeerAccess(other.device, 0);
        if (status == cudaErrorPeerAccessAlreadyEnabled)
          status = cudaSuccess;
      } else {
        status = cudaIpcOpenMemHandle(&area, other.handle, cudaIpcMemLazyEnablePeerAccess);
        if (status == cudaSuccess)
          opened_.push_back(area);
      }
      cudaGetLastError();
      if (status != cudaSuccess)
        return false;
    }
    call_.areas[member] = lay_out_peer_area(area, call_.members);
    return true;
  }

  void sum(float* values, std::uint32_t count, cudaStream_t stream) override {
    peer_sum_call call = call_;
    call.values = values;
    call.count = count;
    peer_sum(call, stream);
  }

  void stop() override { *static_cast<volatile unsigned*>(stop_.as<unsigned>()) = 1; }

 private:
  device_memory area_, stop_;
  std::vector<void*> opened_;
  peer_sum_call call_;
};

} // namespace

std::unique_ptr<peer_group> peer_group::meet(communicator& group, std::uint32_t device,
                                             cudaStream_t stream) {
  auto peers = std::make_unique<mapped_peers>();
  const bool ready = group.count() <= peers_max && peers->prepare(group, stream);
  peer_card mine = peers->card(device);
  mine.usable = mine.usable && ready;
  const auto cards = exchange(group, mine, stream);
  bool all = ready && !cards.empty();
  for (std::uint32_t i = 0; all && i < cards.size(); ++i)
    all = peers->reach(mine, cards[i], i);
  mine.usable = all;
  for (const peer_card& card : exchange(group, mine, stream))
    all = all && card.usable;
  return all ? std::move(peers) : nullptr;
}

} // namespace tokenrouter::gpu
