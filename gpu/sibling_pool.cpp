#include "gpu/sibling_pool.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "gpu/mapped_memory.hpp"
#include "gpu/recorded_work.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/log.hpp"
#include "runtime/exec/kv_region.hpp"

namespace tokenrouter::gpu {
namespace {

struct pool_address {
  memory_card card;
  std::uint64_t bytes_per_block = 0;
  std::uint64_t blocks = 0;
};
static_assert(sizeof(pool_address) <= limits::kv_address_bytes_max);

constexpr std::uint64_t tried_blocks = 8;

/// `status` is of enqueueing them.
result<void> await_copies(cudaError_t status, cudaStream_t stream) {
  if (status == cudaSuccess)
    status = cudaStreamSynchronize(stream);
  cudaGetLastError();
  if (status != cudaSuccess)
    return fail(errc::unavailable, cudaGetErrorString(status));
  return {};
}

/// Copies some blocks to memory that nobody uses, whatever they hold: the first copy over a way is
/// slow, and how fast the others are is of interest. Error: unavailable, capacity.
result<void> try_way(const mapped_memory& from, std::uint64_t blocks, const pool_view& own,
                     cudaStream_t stream) {
  const std::uint64_t bytes = std::min(blocks, tried_blocks) * own.bytes_per_block;
  auto unused = device_memory::allocate(bytes);
  if (!unused)
    return tl::unexpected(unused.error());
  device_timer timer;
  for (int i = 0; i < 2; ++i) {
    auto status = cudaSuccess;
    timer.begin(stream);
    for (std::uint64_t at = 0; at < bytes && status == cudaSuccess; at += own.bytes_per_block)
      status = cudaMemcpyAsync(unused->as() + at, static_cast<const std::byte*>(from.data()) + at,
                               own.bytes_per_block, cudaMemcpyDefault, stream);
    timer.end(stream);
    if (auto arrived = await_copies(status, stream); !arrived)
      return arrived;
  }
  spdlog::info("KV of a sibling comes at {:.0f} GB/s, in blocks of {} bytes",
               static_cast<double>(bytes) / timer.us() / 1e3, own.bytes_per_block);
  return {};
}

class sibling_pool final : public kv_source {
 public:
  sibling_pool(mapped_memory from, std::uint64_t blocks, const pool_view& own, cudaStream_t stream)
      : from_(std::move(from)), blocks_(blocks), own_(own), stream_(stream) {}

  result<void> read(std::span<const block_copy> copies) override {
    auto status = cudaSetDevice(static_cast<int>(own_.device));
    for (const auto& one : copies) {
      std::byte* to = own_.at(one.to);
      if (one.from >= blocks_)
        return no_such_block(one.from, blocks_);
      const auto* from =
          static_cast<const std::byte*>(from_.data()) + one.from * own_.bytes_per_block;
      status = cudaMemcpyAsync(to, from, own_.bytes_per_block, cudaMemcpyDefault, stream_);
      if (status != cudaSuccess)
        break;
    }
    return await_copies(status, stream_);
  }

 private:
  mapped_memory from_;
  std::uint64_t blocks_;
  pool_view own_;
  cudaStream_t stream_;
};

} // namespace

std::vector<std::byte> address_of(const pool_view& pool) {
  const pool_address address{card_of(*pool.memory, pool.device), pool.bytes_per_block, pool.blocks};
  if (!address.card.usable)
    return {};
  const auto* bytes = reinterpret_cast<const std::byte*>(&address);
  return {bytes, bytes + sizeof address};
}

result<std::unique_ptr<kv_source>> reach_pool_at(std::span<const std::byte> address,
                                                 const pool_view& own, cudaStream_t stream) {
  pool_address other;
  if (address.size() != sizeof other)
    return fail(errc::unavailable, "its KV pool is not on a GPU");
  std::memcpy(&other, address.data(), sizeof other);
  if (other.bytes_per_block != own.bytes_per_block)
    return fail(errc::mismatch, "its KV blocks have " + std::to_string(other.bytes_per_block) +
                                    " bytes, ours " + std::to_string(own.bytes_per_block));
  if (const auto status = cudaSetDevice(static_cast<int>(own.device)); status != cudaSuccess)
    return fail(errc::unavailable, cudaGetErrorString(status));
  auto memory = mapped_memory::map(other.card, own.device);
  if (!memory)
    return tl::unexpected(memory.error());
  if (auto tried = try_way(*memory, other.blocks, own, stream); !tried)
    return tl::unexpected(tried.error());
  return std::make_unique<sibling_pool>(std::move(*memory), other.blocks, own, stream);
}

} // namespace tokenrouter::gpu
