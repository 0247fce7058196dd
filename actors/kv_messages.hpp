#pragma once

#include <cstdint>
#include <vector>

#include "actors/messages.hpp"

/// How KV gets from one replica of a model to another. Fetchers agree on what moves: one asks what
/// siblings have, borrows blocks of the best, and returns them. Movers move it, each between its
/// shard and the shard of the same number of the sibling. The KV itself goes beside the messages
/// (runtime/transport/bulk.hpp), or is read in place. A fetch has a number of the replica that
/// makes it. See actors/README.md.
namespace tokenrouter {

/// kv_mover → the same shard of every sibling, once: this shard is loaded.
struct kv_greeting {
  shard_id from;
  shard_id to;
  std::uint64_t layout = 0;          ///< only who has the same can read its blocks
  std::vector<std::uint8_t> address; ///< of its KV pool; empty: it can't be read from elsewhere

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_greeting& x) {
    return f(x.from, x.to, x.layout, x.address);
  }
};

/// kv_mover → the fetcher of its replica, once for each sibling: how KV comes from there.
struct kv_way {
  shard_id from;
  replica_id to; ///< its own
  replica_id sibling;
  bool alike = false;    ///< false: not at all, it means something else there
  bool in_place = false; ///< it reads the sibling's pool itself; else KV is sent
  std::uint64_t bytes_per_block = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_way& x) {
    return f(x.from, x.to, x.sibling, x.alike, x.in_place, x.bytes_per_block);
  }
};

/// kv_fetcher → sibling: how many of these leading tokens have you got?
struct prefix_ask {
  replica_id from;
  replica_id to;
  std::uint64_t fetch = 0;
  std::vector<token_id> tokens; ///< whole blocks

  template <class Inspector>
  friend auto inspect(Inspector& f, prefix_ask& x) {
    return f(x.from, x.to, x.fetch, x.tokens);
  }
};

/// … answers `prefix_ask`; nothing is kept for it.
struct prefix_offer {
  replica_id from;
  replica_id to;
  std::uint64_t fetch = 0;
  std::uint32_t tokens = 0; ///< whole blocks

  template <class Inspector>
  friend auto inspect(Inspector& f, prefix_offer& x) {
    return f(x.from, x.to, x.fetch, x.tokens);
  }
};

/// kv_fetcher → sibling: lend me the blocks of this piece.
struct kv_borrow {
  replica_id from;
  replica_id to;
  std::uint64_t fetch = 0;
  std::uint32_t first_block = 0;
  std::uint32_t block_count = 0;
  std::vector<token_id> tokens; ///< up to the end of the piece

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_borrow& x) {
    return f(x.from, x.to, x.fetch, x.first_block, x.block_count, x.tokens);
  }
};

/// … answers `kv_borrow`.
struct kv_loan {
  replica_id from;
  replica_id to;
  std::uint64_t fetch = 0;
  std::uint32_t first_block = 0;
  std::vector<block_id> blocks; ///< kept as they are until `kv_return`; empty: it has them no more

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_loan& x) {
    return f(x.from, x.to, x.fetch, x.first_block, x.blocks);
  }
};

/// kv_fetcher → sibling: that piece is needed no more.
struct kv_return {
  replica_id from;
  replica_id to;
  std::uint64_t fetch = 0;
  std::uint32_t first_block = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_return& x) {
    return f(x.from, x.to, x.fetch, x.first_block);
  }
};

/// kv_fetcher → every kv_mover of its replica: fill these blocks from those that the sibling lent.
struct kv_fill {
  shard_id to;
  replica_id sibling;
  std::uint64_t fetch = 0;
  std::uint32_t first_block = 0;  ///< with `fetch` the name of the piece
  std::vector<block_copy> copies; ///< from the sibling's pool to the own one

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_fill& x) {
    return f(x.to, x.sibling, x.fetch, x.first_block, x.copies);
  }
};

/// … answers `kv_fill`, once, whatever happens.
struct kv_filled {
  shard_id from;
  replica_id to; ///< its own
  std::uint64_t fetch = 0;
  std::uint32_t first_block = 0;
  bool sound = false; ///< false: the blocks hold anything

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_filled& x) {
    return f(x.from, x.to, x.fetch, x.first_block, x.sound);
  }
};

/// kv_mover → the same shard of a sibling: send me these blocks, which I was lent.
struct kv_wish {
  shard_id from;
  shard_id to;
  std::uint64_t number = 0; ///< of the wishes that `from` has
  std::uint64_t tag = 0;    ///< of the bulk transfer that `from` has posted
  std::vector<block_id> blocks;

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_wish& x) {
    return f(x.from, x.to, x.number, x.tag, x.blocks);
  }
};

/// … answers `kv_wish`; a second one takes the first back if the data did not leave.
struct kv_parcel {
  shard_id from;
  shard_id to;
  std::uint64_t number = 0;
  bool sent = false;
  std::uint32_t checksum = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_parcel& x) {
    return f(x.from, x.to, x.number, x.sent, x.checksum);
  }
};

bool valid(const kv_greeting& x);
bool valid(const kv_way& x);
bool valid(const prefix_ask& x);
bool valid(const prefix_offer& x);
bool valid(const kv_borrow& x);
bool valid(const kv_loan& x);
bool valid(const kv_return& x);
bool valid(const kv_fill& x);
bool valid(const kv_filled& x);
bool valid(const kv_wish& x);
bool valid(const kv_parcel& x);

} // namespace tokenrouter
