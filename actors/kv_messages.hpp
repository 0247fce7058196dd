#pragma once

#include <cstdint>
#include <vector>

#include "actors/messages.hpp"

/// How KV gets from one replica of a model to another: messages between their fetchers, in the
/// order of a fetch. The KV itself goes beside them (runtime/transport/bulk.hpp), or is read in
/// place. A fetch has a number of the replica that makes it. See actors/README.md.
namespace tokenrouter {

/// kv_fetcher → every sibling, once: this replica is loaded.
struct kv_greeting {
  replica_id from;
  replica_id to;
  std::uint64_t layout = 0;          ///< only who has the same can read its blocks
  std::vector<std::uint8_t> address; ///< of its KV pool; empty: it can't be read from elsewhere

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_greeting& x) {
    return f(x.from, x.to, x.layout, x.address);
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

/// kv_fetcher → sibling: send one piece of it, or let me read it.
struct kv_fetch {
  replica_id from;
  replica_id to;
  std::uint64_t fetch = 0;
  std::uint32_t first_block = 0;
  std::uint32_t block_count = 0;
  std::uint64_t tag = 0;        ///< of the bulk transfer that `from` has posted; 0: it reads itself
  std::vector<token_id> tokens; ///< up to the end of the piece

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_fetch& x) {
    return f(x.from, x.to, x.fetch, x.first_block, x.block_count, x.tag, x.tokens);
  }
};

/// … answers `kv_fetch`.
struct kv_piece {
  replica_id from;
  replica_id to;
  std::uint64_t fetch = 0;
  std::uint32_t first_block = 0;
  bool given = false;           ///< false: it is not there any more, or did not leave
  std::vector<block_id> blocks; ///< to be read; kept until `kv_read`. Empty: it was sent
  std::uint32_t checksum = 0;   ///< of what was sent

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_piece& x) {
    return f(x.from, x.to, x.fetch, x.first_block, x.given, x.blocks, x.checksum);
  }
};

/// kv_fetcher → sibling: the blocks of that piece were read.
struct kv_read {
  replica_id from;
  replica_id to;
  std::uint64_t fetch = 0;
  std::uint32_t first_block = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, kv_read& x) {
    return f(x.from, x.to, x.fetch, x.first_block);
  }
};

bool valid(const kv_greeting& x);
bool valid(const prefix_ask& x);
bool valid(const prefix_offer& x);
bool valid(const kv_fetch& x);
bool valid(const kv_piece& x);
bool valid(const kv_read& x);

} // namespace tokenrouter
