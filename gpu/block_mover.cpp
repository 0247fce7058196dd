#include "gpu/block_mover.hpp"

#include <cstring>
#include <utility>

#include "gpu/cuda_error.hpp"
#include "runtime/core/check.hpp"

namespace tokenrouter::gpu {

block_mover::block_mover(std::uint32_t device) : device_(device) {
  for (auto& event : passed_)
    cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}

block_mover::~block_mover() {
  for (auto& event : passed_)
    cudaEventDestroy(event);
}

void block_mover::prepare(std::size_t bytes_per_block) {
  cuda_check(cudaSetDevice(static_cast<int>(device_)));
  if (pinned_.bytes() > 0)
    return;
  auto memory = device_memory::allocate_pinned(2 * bytes_per_block);
  check(memory.has_value(), memory ? "" : memory.error().message.c_str());
  pinned_ = std::move(*memory);
}

void block_mover::to_host(const pool_view& pool, std::span<const block_id> blocks,
                          std::span<std::byte> bytes) {
  const std::size_t each = pool.bytes_per_block;
  check(bytes.size() == blocks.size() * each, "as many bytes as the blocks have");
  prepare(each);
  for (std::size_t i = 0; i <= blocks.size(); ++i) {
    if (i < blocks.size()) {
      cuda_check(
          cudaMemcpyAsync(half(i), pool.at(blocks[i]), each, cudaMemcpyDeviceToHost, stream_));
      cuda_check(cudaEventRecord(passed_[i % 2], stream_));
    }
    if (i == 0)
      continue;
    cuda_check(cudaEventSynchronize(passed_[(i - 1) % 2]));
    std::memcpy(bytes.data() + (i - 1) * each, half(i - 1), each);
  }
}

void block_mover::to_device(const pool_view& pool, std::span<const block_id> blocks,
                            std::span<const std::byte> bytes) {
  const std::size_t each = pool.bytes_per_block;
  check(bytes.size() == blocks.size() * each, "as many bytes as the blocks have");
  prepare(each);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i > 1)
      cuda_check(cudaEventSynchronize(passed_[i % 2]));
    std::memcpy(half(i), bytes.data() + i * each, each);
    cuda_check(cudaMemcpyAsync(pool.at(blocks[i]), half(i), each, cudaMemcpyHostToDevice, stream_));
    cuda_check(cudaEventRecord(passed_[i % 2], stream_));
  }
  cuda_check(cudaStreamSynchronize(stream_));
}

} // namespace tokenrouter::gpu
