#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// Which blocks of one replica's KV pool belong to which request. Plain accounting: no device, no
/// clock. One owner (the kv_pool actor).
///
/// A request's blocks are *in use* from its lease until `park`, then *parked* until its next lease
/// or its release. Under pressure a lease evicts parked requests, least recently parked first, and
/// after them in-use requests that are younger than the one in need, youngest first. An evicted
/// request holds nothing; its KV must be computed again. So the oldest request can always grow to
/// the size of the pool, and requests cannot evict one another in turns for ever.
class block_ledger {
 public:
  explicit block_ledger(std::uint32_t blocks);

  struct want {
    request_id request;
    std::uint32_t tokens = 0; ///< positions its blocks must cover after the step
    std::uint64_t age = 0;    ///< smaller is older; the same in every lease of a request
  };

  struct lease_result {
    std::vector<bool> granted;       ///< one for each want
    std::vector<request_id> evicted; ///< lost all their blocks, wants that were refused among them
  };

  /// Grows the tables of `wants`, in their order. A want is refused if the pool cannot cover it
  /// without touching older requests; its table then is as it was, or empty if it was evicted.
  lease_result lease(std::span<const want> wants);

  /// The request's turn went to a peer: its KV stays, but may be evicted first. Unknown: ignored.
  void park(request_id request);

  /// Gives all its blocks back. Unknown: ignored.
  void release(request_id request);

  /// Blocks of a request in order of position; empty if it holds none.
  std::span<const block_id> table(request_id request) const;

  std::uint32_t total_blocks() const { return total_blocks_; }
  std::uint32_t free_blocks() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t parked_requests() const { return static_cast<std::uint32_t>(parked_.size()); }

  /// Every block is free or in exactly one table. For tests and simulation.
  bool consistent() const;

 private:
  struct entry {
    std::vector<block_id> table;
    std::uint64_t age = 0;
    std::uint64_t parked_stamp = 0; ///< 0: in use
    std::uint64_t lease_stamp = 0;  ///< of the lease that last granted it blocks
  };

  void unpark(entry& e);
  void give_back(entry& e);
  bool evict_for(request_id needy, std::uint64_t age, std::vector<request_id>& evicted);

  std::uint32_t total_blocks_;
  std::vector<block_id> free_; ///< used as a stack
  std::unordered_map<request_id, entry> entries_;
  std::map<std::uint64_t, request_id> parked_; ///< by parked_stamp: least recent first
  std::uint64_t stamp_ = 0;
  std::uint64_t current_lease_ = 0;
};

/// Blocks that `tokens` positions need.
std::uint32_t blocks_for(std::uint32_t tokens);

} // namespace tokenrouter
