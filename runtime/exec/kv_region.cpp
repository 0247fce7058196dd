#include "runtime/exec/kv_region.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include <unistd.h>

#include "runtime/core/check.hpp"
#include "runtime/core/process_stamp.hpp"

namespace tokenrouter {

namespace {

struct region_address {
  std::uint64_t process = 0;
  std::uint64_t start = 0; ///< process_stamp()
  std::uint64_t number = 0;
};

struct known_region {
  std::weak_ptr<void> owner;
  kv_region pool; ///< without its owner
};

/// The pools of this process.
struct region_registry {
  std::mutex mutex;
  std::uint64_t next_number = 1;
  std::map<std::uint64_t, known_region> pools;

  static region_registry& here() {
    static region_registry one;
    return one;
  }
};

class region_source final : public kv_source {
 public:
  region_source(kv_region from, kv_region to) : from_(std::move(from)), to_(std::move(to)) {}

  result<void> read(std::span<const block_copy> copies) override {
    for (const auto& one : copies) {
      check(one.to < to_.blocks, "own block ids are in the KV pool");
      if (one.from >= from_.blocks)
        return no_such_block(one.from, from_.blocks);
      std::memcpy(to_.data + one.to * to_.bytes_per_block,
                  from_.data + one.from * from_.bytes_per_block, to_.bytes_per_block);
    }
    return {};
  }

 private:
  kv_region from_, to_;
};

} // namespace

tl::unexpected<error> no_such_block(block_id block, std::uint64_t blocks) {
  return fail(errc::malformed, "the sibling named KV block " + std::to_string(block) + " of " +
                                   std::to_string(blocks));
}

std::vector<std::byte> publish_kv(const kv_region& pool) {
  auto& all = region_registry::here();
  const std::lock_guard guard(all.mutex);
  std::erase_if(all.pools, [](const auto& entry) { return entry.second.owner.expired(); });
  const region_address address{static_cast<std::uint64_t>(getpid()), process_stamp(),
                               all.next_number++};
  known_region known{pool.owner, pool};
  known.pool.owner.reset();
  all.pools.emplace(address.number, std::move(known));
  std::vector<std::byte> bytes(sizeof address);
  std::memcpy(bytes.data(), &address, sizeof address);
  return bytes;
}

result<std::unique_ptr<kv_source>> reach_region(std::span<const std::byte> address, kv_region own) {
  region_address wanted;
  auto& all = region_registry::here();
  const std::lock_guard guard(all.mutex);
  if (address.size() == sizeof wanted)
    std::memcpy(&wanted, address.data(), sizeof wanted);
  const auto found = all.pools.find(wanted.number);
  if (wanted.process != static_cast<std::uint64_t>(getpid()) || wanted.start != process_stamp() ||
      found == all.pools.end())
    return fail(errc::unavailable, "that KV pool is not in this process");
  kv_region from = found->second.pool;
  from.owner = found->second.owner.lock();
  if (!from.owner)
    return fail(errc::unavailable, "that KV pool is gone");
  if (from.bytes_per_block != own.bytes_per_block)
    return fail(errc::mismatch, "that KV pool has blocks of another size");
  return std::make_unique<region_source>(std::move(from), std::move(own));
}

} // namespace tokenrouter
