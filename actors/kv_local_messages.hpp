#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>

#include "actors/kv_messages.hpp"
#include "runtime/policy/block_ledger.hpp"
#include "runtime/transport/bulk.hpp"

/// What a fetcher says to the scheduler and pool beside it, and a mover to its model. Never leaves
/// a rank.
namespace tokenrouter {

/// scheduler → kv_fetcher: look whether a sibling has more of this request's start. The pool
/// answers `prefix_fetched` to the scheduler, once, whatever happens.
struct fetch_prefix {
  request_id request;
  std::uint64_t age = 0;
  std::vector<token_id> tokens;     ///< whole blocks that can be used
  std::uint32_t have_tokens = 0;    ///< of these, those whose KV it holds; whole blocks
  double computed_us_per_token = 0; ///< what a prefill takes here; 0: not known yet
};

/// kv_pool → scheduler: the end of a fetch.
struct prefix_fetched {
  request_id request;
  std::uint32_t tokens = 0; ///< that follow those it had; 0: none
};

/// kv_pool → scheduler, after a lease whose grant spoke of loans: fewer blocks are lent now.
struct blocks_back {};

/// kv_fetcher → kv_pool: how much of this is cached? Answered by `prefix_known`.
struct prefix_peek {
  replica_id asker;
  std::uint64_t fetch = 0;
  std::vector<token_id> tokens;
};
struct prefix_known {
  replica_id asker;
  std::uint64_t fetch = 0;
  std::uint32_t tokens = 0;
};

/// kv_fetcher → kv_pool: set blocks aside. Answered by `blocks_reserved`, perhaps with fewer.
struct reserve_blocks {
  std::uint64_t fetch = 0;
  std::uint32_t block_count = 0;
};
struct blocks_reserved {
  std::uint64_t fetch = 0;
  std::vector<block_id> blocks;
};

/// kv_fetcher → kv_pool, in the name of the scheduler, which gets `prefix_fetched`: the end of a
/// fetch; its first `filled_blocks` hold the KV.
struct join_blocks {
  std::uint64_t fetch = 0;
  request_id request;
  std::uint64_t age = 0;
  std::vector<token_id> tokens;
  std::uint32_t have_blocks = 0;
  std::uint32_t filled_blocks = 0;
};

/// kv_fetcher → kv_pool: keep these blocks as they are until `unpin_blocks`. Answered by
/// `blocks_pinned`: all of them, or none.
struct pin_blocks {
  std::uint64_t pin = 0;
  std::vector<token_id> tokens;
  std::uint32_t first_block = 0;
  std::uint32_t block_count = 0;
};
struct blocks_pinned {
  std::uint64_t pin = 0;
  std::vector<block_id> blocks;
};
struct unpin_blocks {
  std::uint64_t pin = 0;
};

/// kv_mover → model, once. Answered by `kv_facts` when it is loaded, from its `kv_copier`, to which
/// the others here go.
struct ask_kv {};
struct kv_facts {
  std::uint64_t layout = 0;
  std::uint64_t bytes_per_block = 0;
  std::vector<std::byte> address; ///< backend::kv_address
};

/// kv_mover → kv_copier: find a way to a sibling's KV pool. Answered by `kv_reached`.
struct reach_pool {
  replica_id sibling;
  std::vector<std::byte> address;
};
struct kv_reached {
  replica_id sibling;
  bool reached = false;
};

/// kv_mover → kv_copier: write the KV of these blocks to the buffer, one after the other. Answered
/// by `blocks_exported`; the buffer is the copier's until then.
struct export_blocks {
  std::uint64_t number = 0;
  std::vector<block_id> blocks;
  std::shared_ptr<bulk_buffer> buffer;
};
struct blocks_exported {
  std::uint64_t number = 0;
  std::uint32_t checksum = 0;
};

/// kv_mover → kv_copier: the KV in the buffer is that of these blocks, if its checksum is right.
/// Answered by `blocks_imported`; the buffer is the copier's until then.
struct import_blocks {
  std::uint64_t number = 0;
  std::vector<block_id> blocks;
  std::shared_ptr<bulk_buffer> buffer;
  std::uint32_t checksum = 0;
};

/// kv_mover → kv_copier: copy blocks of a sibling's pool, which was reached. Answered by
/// `blocks_imported`.
struct read_blocks {
  std::uint64_t number = 0;
  replica_id sibling;
  std::vector<block_copy> copies;
};
struct blocks_imported {
  std::uint64_t number = 0;
  bool sound = false; ///< false: the blocks hold anything
};

/// bulk_mover → kv_mover: look at that transfer.
struct bulk_news {
  std::uint64_t transfer = 0;
};

} // namespace tokenrouter

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::fetch_prefix)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::prefix_fetched)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::blocks_back)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::prefix_peek)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::prefix_known)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::reserve_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::blocks_reserved)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::join_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::pin_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::blocks_pinned)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::unpin_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::ask_kv)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::kv_facts)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::reach_pool)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::kv_reached)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::export_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::blocks_exported)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::import_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::read_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::blocks_imported)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::bulk_news)
