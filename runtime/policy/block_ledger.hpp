#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/core/ids.hpp"
#include "runtime/policy/prefix_index.hpp"

namespace tokenrouter {

/// Which blocks of one replica's KV pool belong to which request. Plain accounting: no device, no
/// clock. One owner (the kv_pool actor).
///
/// A request's blocks are *in use* from its lease until `park`, then *parked* until its next lease
/// or its release. Whole blocks that were remembered stay behind as *cache* and serve any request
/// that starts with the same tokens; such a block is shared, and whoever would write to it gets a
/// copy of its own.
///
/// A lease that makes a request grow may give it blocks for positions yet to come (*look-ahead*,
/// policy/look_ahead), so that its next steps need no lease.
///
/// Under pressure a lease takes back the look-ahead of all requests in use; then cached blocks that
/// no request uses, least recently used first; then evicts parked requests, least recently parked
/// first; then in-use requests that are younger than the one in need, youngest first. An evicted
/// request holds nothing; its KV must be computed again. So the oldest request can always grow to
/// the size of the pool, and requests cannot evict one another in turns for ever. Only blocks that
/// are pinned or reserved while KV moves between replicas are out of its reach, until that ends.
class block_ledger {
 public:
  /// `keep_prefixes` false: `remember` does nothing and nothing is ever matched.
  explicit block_ledger(std::uint32_t blocks, bool keep_prefixes = true);

  struct want {
    request_id request;
    std::uint32_t tokens = 0;      ///< positions its blocks must cover after the step
    std::uint64_t age = 0;         ///< smaller is older; the same in every lease of a request
    std::uint32_t kept_tokens = 0; ///< leading positions that the step only reads
    std::uint32_t tokens_max = 0;  ///< it will never need more; no look-ahead if not above `tokens`
  };

  /// A request in use that asks for nothing, and the positions whose blocks it cannot do without.
  struct holding {
    request_id request;
    std::uint32_t tokens = 0;
  };

  struct copy {
    block_id from = 0;
    block_id to = 0;
  };

  struct lease_result {
    std::vector<bool> granted; ///< one for each want
    /// One for each want, 0 if refused: positions from the block of kept_tokens up to here lie in
    /// blocks that are the request's alone.
    std::vector<std::uint32_t> own_tokens;
    bool took_look_ahead = false;    ///< every `held` request has the blocks of its `tokens` left
    std::vector<request_id> evicted; ///< lost all their blocks, wants that were refused among them
    std::vector<copy> copies;        ///< to be done, in order, before the step
  };

  /// Grows the tables of `wants`, in their order. `held`: all other requests that may have
  /// look-ahead. A want is refused if the pool cannot cover it
  /// without touching older requests; its table then is as it was, or empty if it was evicted.
  lease_result lease(std::span<const want> wants, std::span<const holding> held = {});

  /// Gives a request the cached blocks of the longest known prefix of `tokens` within the first
  /// `tokens_max` of them. Returns how many tokens they cover; 0 if it holds blocks already.
  std::uint32_t adopt(request_id request, std::uint64_t age, std::span<const token_id> tokens,
                      std::uint32_t tokens_max);

  /// The request's blocks hold the KV of exactly these leading tokens of its own: whole blocks of
  /// them become cache. Unknown: ignored.
  void remember(request_id request, std::span<const token_id> tokens);

  /// The request's turn went to a peer: the KV of its first `tokens` positions stays, but may be
  /// evicted first; blocks beyond are given back. Unknown: ignored.
  void park(request_id request, std::uint32_t tokens);

  /// Gives all its blocks back. Unknown: ignored.
  void release(request_id request);

  /// How many leading tokens the cache has the KV of, in whole blocks; nothing counts as used.
  std::uint32_t known_tokens(std::span<const token_id> tokens) const;

  /// Keeps cached blocks [first_block, first_block + block_count) of `tokens` as they are until
  /// `unpin`; none of them if one is missing. Not written, not given to anyone.
  std::vector<block_id> pin(std::uint64_t pin, std::span<const token_id> tokens,
                            std::uint32_t first_block, std::uint32_t block_count);

  /// Unknown: ignored.
  void unpin(std::uint64_t pin);

  /// Sets blocks aside for KV that is to come, as many of `block_count` as are free or held as
  /// cache alone: no request loses any.
  std::vector<block_id> reserve(std::uint64_t reservation, std::uint32_t block_count);

  struct joining {
    request_id request;
    std::uint64_t age = 0;
    std::span<const token_id> tokens; ///< whole blocks: those it has and those that were filled
    std::uint32_t have_blocks = 0;
    std::uint32_t filled_blocks = 0; ///< the first of the reserved ones
  };

  /// Ends a reservation, which may be unknown: the filled blocks follow those that the request has,
  /// and become cache; the others are given back. If the request lost its own meanwhile, all are.
  /// Returns how many tokens were added.
  std::uint32_t join(std::uint64_t reservation, const joining& x);

  /// Some blocks are pinned or reserved: what a lease lacks may come back without any request's
  /// doing.
  bool has_loans() const { return !pins_.empty() || !reserved_.empty(); }

  /// Blocks of a request in order of position; empty if it holds none.
  std::span<const block_id> table(request_id request) const;

  std::uint32_t total_blocks() const { return total_blocks_; }
  std::uint32_t free_blocks() const { return static_cast<std::uint32_t>(free_.size()); }
  /// Held as cache alone: as good as free.
  std::uint32_t cached_blocks() const;
  std::uint32_t parked_requests() const { return static_cast<std::uint32_t>(parked_.size()); }

  /// Every block is free, or referred to exactly as often as tables and cache name it. For tests
  /// and simulation.
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
  void cut(request_id request, std::uint32_t tokens);
  void take_look_ahead(std::span<const want> wants, std::span<const holding> held);
  void look_ahead(entry& e, const want& w);
  std::uint32_t own_tokens(const entry& e, const want& w) const;
  bool forget_one_cached();
  bool evict_for(request_id needy, std::uint64_t age, std::vector<request_id>& evicted);
  std::size_t shared_from(const entry& e, std::size_t first, std::size_t end) const;
  bool forget_unused();
  bool unshare_one(const entry& e, std::size_t first, std::size_t end);
  void extend(entry& e, const want& w, std::vector<copy>& copies);
  block_id take_free();
  void drop(block_id block);

  std::uint32_t total_blocks_;
  bool keep_prefixes_;
  prefix_index index_;
  std::vector<std::uint32_t> references_; ///< of each block: tables, index, loans
  std::vector<block_id> free_;            ///< used as a stack
  std::unordered_map<request_id, entry> entries_;
  std::map<std::uint64_t, request_id> parked_; ///< by parked_stamp: least recent first
  std::map<std::uint64_t, std::vector<block_id>> pins_;
  std::map<std::uint64_t, std::vector<block_id>> reserved_;
  std::uint64_t stamp_ = 0;
  std::uint64_t current_lease_ = 0;
};

/// Blocks that `tokens` positions need.
std::uint32_t blocks_for(std::uint32_t tokens);

} // namespace tokenrouter
