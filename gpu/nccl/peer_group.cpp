#include "gpu/nccl/peer_group.hpp"

#include <cstring>
#include <vector>

#include "gpu/cuda_error.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/mapped_memory.hpp"

namespace tokenrouter::gpu {
namespace {

/// Every member's card, by way of the group.
std::vector<memory_card> exchange(communicator& group, const memory_card& mine,
                                  cudaStream_t stream) {
  const std::size_t floats = sizeof(memory_card) / sizeof(float);
  std::vector<memory_card> all(group.count());
  auto memory = device_memory::allocate(all.size() * sizeof(memory_card));
  if (!memory)
    return {};
  auto* here = memory->as<memory_card>();
  cuda_check(cudaMemcpy(here + group.index(), &mine, sizeof mine, cudaMemcpyHostToDevice));
  group.gather(memory->as<float>(), floats, stream);
  if (!group.wait(stream))
    return {};
  cuda_check(
      cudaMemcpy(all.data(), here, all.size() * sizeof(memory_card), cudaMemcpyDeviceToHost));
  return all;
}

class mapped_peers final : public peer_group {
 public:
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

  memory_card card(std::uint32_t device) const { return card_of(area_, device); }

  /// Maps the area of a member; false if there is no way to it.
  bool reach(const memory_card& mine, const memory_card& other, std::uint32_t member) {
    void* area = area_.as();
    if (member != call_.index) {
      auto mapped = mapped_memory::map(other, static_cast<std::uint32_t>(mine.device));
      if (!mapped)
        return false;
      area = mapped->data();
      mapped_.push_back(std::move(*mapped));
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
  std::vector<mapped_memory> mapped_;
  peer_sum_call call_;
};

} // namespace

std::unique_ptr<peer_group> peer_group::meet(communicator& group, std::uint32_t device,
                                             cudaStream_t stream) {
  auto peers = std::make_unique<mapped_peers>();
  const bool ready = group.count() <= peers_max && peers->prepare(group, stream);
  memory_card mine = peers->card(device);
  mine.usable = mine.usable && ready;
  const auto cards = exchange(group, mine, stream);
  bool all = ready && !cards.empty();
  for (std::uint32_t i = 0; all && i < cards.size(); ++i)
    all = peers->reach(mine, cards[i], i);
  mine.usable = all;
  for (const memory_card& card : exchange(group, mine, stream))
    all = all && card.usable;
  return all ? std::move(peers) : nullptr;
}

} // namespace tokenrouter::gpu
