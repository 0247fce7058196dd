#include "gpu/nccl/communicator.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "gpu/cuda_error.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/nccl/nccl_library.hpp"
#include "gpu/nccl/peer_group.hpp"
#include "gpu/recorded_work.hpp"
#include "gpu/stream_owner.hpp"
#include "runtime/core/check.hpp"

namespace tokenrouter::gpu {
namespace {

/// Between two looks at whether the group was stopped, while others are waited for.
constexpr auto join_poll = std::chrono::milliseconds(10);

/// Sizes of sums for which peers' memory is measured against NCCL, in floats.
constexpr std::uint32_t measured_floats[] = {1u << 10, 1u << 12, 1u << 14, 1u << 16, 1u << 18};
constexpr std::uint32_t measured_runs = 50;

/// Looks at a stream between two looks at the connection's health, which take longer.
constexpr std::uint32_t looks_per_health_check = 4096;

error nccl_error(const nccl_functions& nccl, ncclResult_t status, const char* what) {
  const char* detail = nccl.ncclGetLastError(nullptr);
  std::string text = std::string("NCCL: ") + what + ": " + nccl.ncclGetErrorString(status);
  if (detail && *detail)
    text += std::string(" (") + detail + ")";
  return {errc::unavailable, std::move(text)};
}

class nccl_communicator final : public communicator {
 public:
  nccl_communicator(const nccl_functions& nccl, ncclComm_t comm, shard_group group)
      : communicator(group.index, group.count), nccl_(nccl), comm_(comm), group_(std::move(group)) {
  }

  ~nccl_communicator() override {
    // Destroying is collective; where the others may be gone, it would wait for them.
    if (comm_ && group_.stopped())
      nccl_.ncclCommAbort(comm_);
    else if (comm_)
      nccl_.ncclCommDestroy(comm_);
  }

  /// Finds out up to which size sums are faster through peers' memory. Members must agree: they add
  /// up what all measured.
  result<void> choose_way(std::uint32_t device) {
    const stream_owner stream;
    return measure(device, stream);
  }

  std::string way() const override {
    return (peer_floats_ == 0 ? std::string("nccl")
                              : "peer memory up to " + std::to_string(peer_floats_ * 4 / 1024) +
                                    " KiB, nccl above") +
           measured_;
  }

  void sum(float* values, std::size_t count, cudaStream_t stream) override {
    if (count <= peer_floats_ && count % 4 == 0)
      return peers_->sum(values, static_cast<std::uint32_t>(count), stream);
    enqueued(nccl_.ncclAllReduce(values, values, count, ncclFloat32, ncclSum, comm_, stream));
  }

  void gather(float* all, std::size_t count, cudaStream_t stream) override {
    enqueued(nccl_.ncclAllGather(all + index() * count, all, count, ncclFloat32, comm_, stream));
  }

  void send(std::span<const void* const> pieces, std::size_t bytes, std::uint32_t to,
            cudaStream_t stream) override {
    enqueued(nccl_.ncclGroupStart());
    for (const void* piece : pieces)
      enqueued(nccl_.ncclSend(piece, bytes, ncclInt8, static_cast<int>(to), comm_, stream));
    enqueued(nccl_.ncclGroupEnd());
  }

  void receive(std::span<void* const> pieces, std::size_t bytes, std::uint32_t from,
               cudaStream_t stream) override {
    enqueued(nccl_.ncclGroupStart());
    for (void* piece : pieces)
      enqueued(nccl_.ncclRecv(piece, bytes, ncclInt8, static_cast<int>(from), comm_, stream));
    enqueued(nccl_.ncclGroupEnd());
  }

  result<void> wait(cudaStream_t stream) override {
    for (std::uint32_t looks = 1;; ++looks) {
      const auto status = cudaStreamQuery(stream);
      if (status == cudaSuccess)
        return {};
      if (status != cudaErrorNotReady)
        cuda_check(status);
      if (group_.stopped())
        return give_up({errc::unavailable, "another shard of the model is gone"}, stream);
      if (looks % looks_per_health_check != 0)
        continue;
      ncclResult_t health = ncclSuccess;
      nccl_.ncclCommGetAsyncError(comm_, &health);
      if (health != ncclSuccess)
        return give_up(nccl_error(nccl_, health, "a step"), stream);
    }
  }

 private:
  void enqueued(ncclResult_t status) {
    check(status == ncclSuccess, nccl_.ncclGetErrorString(status));
  }

  result<void> measure(std::uint32_t device, cudaStream_t stream) {
    peers_ = peer_group::meet(*this, device, stream);
    auto memory = device_memory::allocate(peer_sum_floats_max * sizeof(float));
    if (!peers_ || !memory)
      return {};
    auto* values = memory->as<float>();
    cuda_check(cudaMemsetAsync(values, 0, memory->bytes(), stream));
    device_timer timer;
    const auto time_us = [&](const auto& sum) -> result<float> {
      const recorded_work many(stream, [&] {
        for (std::uint32_t i = 0; i < measured_runs; ++i)
          sum();
      });
      for (int warm = 0; warm < 2; ++warm) {
        timer.begin(stream);
        many.launch(stream);
        timer.end(stream);
        if (auto ok = wait(stream); !ok)
          return tl::unexpected(ok.error());
      }
      return static_cast<float>(timer.us());
    };
    // Connections are made by their first use, which no graph can record.
    enqueued(nccl_.ncclAllReduce(values, values, peer_sum_floats_max, ncclFloat32, ncclSum, comm_,
                                 stream));
    if (auto ok = wait(stream); !ok)
      return ok;
    for (const std::uint32_t floats : measured_floats) {
      const auto direct = time_us([&] { peers_->sum(values, floats, stream); });
      const auto library = direct ? time_us([&] {
        enqueued(nccl_.ncclAllReduce(values, values, floats, ncclFloat32, ncclSum, comm_, stream));
      })
                                  : direct;
      if (!library)
        return tl::unexpected(library.error());
      const float times[4] = {*direct, *library, 0, 0};
      cuda_check(cudaMemcpy(values, times, sizeof times, cudaMemcpyHostToDevice));
      enqueued(nccl_.ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, comm_, stream));
      if (auto ok = wait(stream); !ok)
        return ok;
      float sums[4] = {};
      cuda_check(cudaMemcpy(sums, values, sizeof sums, cudaMemcpyDeviceToHost));
      char text[64];
      std::snprintf(text, sizeof text, "%s%u KiB: %.1f us against %.1f",
                    measured_.empty() ? " (" : ", ", floats * 4 / 1024,
                    sums[0] / static_cast<float>(measured_runs * count()),
                    sums[1] / static_cast<float>(measured_runs * count()));
      measured_ += text;
      if (sums[0] > sums[1])
        break;
      peer_floats_ = floats;
    }
    measured_ += measured_.empty() ? "" : ")";
    return {};
  }

  /// Makes the kernels that wait for others return. NCCL's own end waits for every graph with work
  /// of the communicator in it, and those are their owner's: it is left to a thread of its own.
  result<void> give_up(error why, cudaStream_t stream) {
    if (peers_)
      peers_->stop();
    std::thread([abort = nccl_.ncclCommAbort, comm = std::exchange(comm_, nullptr)] {
      abort(comm);
    }).detach();
    cudaStreamSynchronize(stream);
    return tl::unexpected(std::move(why));
  }

  const nccl_functions& nccl_;
  ncclComm_t comm_;
  shard_group group_;
  std::unique_ptr<peer_group> peers_; ///< null: some pair has no direct way
  std::size_t peer_floats_ = 0;       ///< largest sum that goes through them
  std::string measured_;
};

struct joined {
  ncclComm_t comm = nullptr;
  ncclResult_t status = ncclSuccess;
};

} // namespace

result<std::unique_ptr<communicator>> communicator::join(const shard_group& group,
                                                         std::uint32_t device) {
  const auto nccl = load_nccl();
  if (!nccl)
    return tl::unexpected(nccl.error());
  ncclUniqueId id{};
  if (group.id.size() != sizeof id)
    return fail(errc::mismatch, "a shard group's id has " + std::to_string(group.id.size()) +
                                    " bytes, NCCL's have " + std::to_string(sizeof id));
  std::memcpy(&id, group.id.data(), sizeof id);
  // Meeting blocks until all are there. A thread of its own can be left behind if they never come.
  std::promise<joined> promise;
  auto outcome = promise.get_future();
  std::thread([nccl = *nccl, id, promise = std::move(promise), index = group.index,
               count = group.count, device]() mutable {
    joined result;
    cuda_check(cudaSetDevice(static_cast<int>(device)));
    result.status =
        nccl->ncclCommInitRank(&result.comm, static_cast<int>(count), id, static_cast<int>(index));
    promise.set_value(result);
  }).detach();
  while (outcome.wait_for(join_poll) != std::future_status::ready)
    if (group.stopped())
      return fail(errc::unavailable, "the other shards of the model did not come");
  const joined met = outcome.get();
  if (met.status != ncclSuccess)
    return tl::unexpected(nccl_error(**nccl, met.status, "meeting the other shards"));
  auto made = std::make_unique<nccl_communicator>(**nccl, met.comm, group);
  if (auto ok = made->choose_way(device); !ok)
    return tl::unexpected(ok.error());
  return made;
}

result<std::vector<std::byte>> make_group_id() {
  const auto nccl = load_nccl();
  if (!nccl)
    return tl::unexpected(nccl.error());
  ncclUniqueId id{};
  if (const auto status = (*nccl)->ncclGetUniqueId(&id); status != ncclSuccess)
    return tl::unexpected(nccl_error(**nccl, status, "making a group's id"));
  const auto* bytes = reinterpret_cast<const std::byte*>(&id);
  return std::vector<std::byte>(bytes, bytes + sizeof id);
}

} // namespace tokenrouter::gpu
