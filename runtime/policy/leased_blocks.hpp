#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// The blocks of one request as its scheduler knows them between two leases, so that a step which
/// stays within them needs no word from the pool. Empty: nothing is known, ask.
class leased_blocks {
 public:
  /// Of a lease that was granted. Positions from the block of `from_tokens` up to `end_tokens` lie
  /// in blocks that nobody else reads.
  void grant(std::span<const block_id> table, std::uint32_t from_tokens, std::uint32_t end_tokens);

  /// May a step write positions [first, end) without a lease? Requires first < end.
  bool cover(std::uint32_t first, std::uint32_t end) const;

  /// The cache may share the whole blocks of the first `tokens` positions from now on.
  void share(std::uint32_t tokens);

  /// The pool took back all blocks beyond those of the first `tokens` positions.
  void cut(std::uint32_t tokens);

  /// From now on the pool may take them away.
  void clear();

  /// In order of position.
  std::span<const block_id> table() const { return table_; }

 private:
  std::vector<block_id> table_;
  std::uint32_t from_tokens_ = 0; ///< [from, end) may be written
  std::uint32_t end_tokens_ = 0;
};

} // namespace tokenrouter
