#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "runtime/core/error.hpp"
#include "runtime/exec/shard_group.hpp"

namespace tokenrouter::gpu {

/// The shards of one replica, one GPU each, as one of them sees it. All members enqueue the same
/// operations in the same order; they run on the device and may be captured in graphs. A member
/// that is gone does not block the others for ever: `wait` gives up when the group is stopped.
/// One thread at a time, that of the shard's model, with the device current.
class communicator {
 public:
  /// Meets the other members: returns when all are there, or with an error when the group is
  /// stopped. Measures how small sums are fastest. Errors: unavailable (NCCL can't be loaded, a
  /// member is missing), and NCCL's own words.
  static result<std::unique_ptr<communicator>> join(const shard_group& group, std::uint32_t device);

  virtual ~communicator() = default;

  /// What carries sums, for the log: with the sizes and times that were measured.
  virtual std::string way() const = 0;

  std::uint32_t index() const { return index_; }
  std::uint32_t count() const { return count_; }

  /// values[count] = their sum over all members, in place.
  virtual void sum(float* values, std::size_t count, cudaStream_t stream) = 0;

  /// all[members][count] holds, at this member's place, its own; and then everybody's.
  virtual void gather(float* all, std::size_t count, cudaStream_t stream) = 0;

  /// Sends pieces of `bytes` each to another member, which receives as many as large ones at the
  /// same place of its order.
  virtual void send(std::span<const void* const> pieces, std::size_t bytes, std::uint32_t to,
                    cudaStream_t stream) = 0;
  virtual void receive(std::span<void* const> pieces, std::size_t bytes, std::uint32_t from,
                       cudaStream_t stream) = 0;

  /// Waits for all that is on the stream. Error: unavailable (the group was stopped or the
  /// connection failed): what was running is ended, and the communicator is of no more use.
  virtual result<void> wait(cudaStream_t stream) = 0;

 protected:
  communicator(std::uint32_t index, std::uint32_t count) : index_(index), count_(count) {}

 private:
  std::uint32_t index_, count_;
};

/// Makes the id of a group that does not exist yet. Errors: unavailable, as join.
result<std::vector<std::byte>> make_group_id();

} // namespace tokenrouter::gpu
