#include "actors/kv_messages.hpp"

#include <algorithm>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

bool in_range(const replica_id& x) {
  return x.model.value < limits::models_max && x.index < limits::replicas_max;
}

bool siblings(const replica_id& one, const replica_id& two) {
  return one.model == two.model && one != two && in_range(one) && in_range(two);
}

template <class Message>
bool between_siblings(const Message& x) {
  return siblings(x.from, x.to);
}

/// Movers deal with the shard of their own number only.
template <class Message>
bool between_shards(const Message& x) {
  return siblings(x.from.replica, x.to.replica) && x.from.index == x.to.index &&
         x.from.index < limits::shards_max;
}

/// From a mover to the fetcher of its replica.
template <class Message>
bool within_replica(const Message& x) {
  return x.from.replica == x.to && in_range(x.to) && x.from.index < limits::shards_max;
}

bool whole_blocks(const std::vector<token_id>& tokens) {
  return !tokens.empty() && tokens.size() % limits::block_tokens == 0 &&
         tokens.size() <= limits::context_tokens_max &&
         std::all_of(tokens.begin(), tokens.end(), [](token_id t) { return t >= 0; });
}

constexpr std::uint32_t blocks_max = limits::context_tokens_max / limits::block_tokens;

} // namespace

bool valid(const kv_greeting& x) {
  return between_shards(x) && x.address.size() <= limits::kv_address_bytes_max;
}

bool valid(const kv_way& x) {
  return within_replica(x) && siblings(x.to, x.sibling) && x.bytes_per_block > 0 &&
         (x.alike || !x.in_place);
}

bool valid(const prefix_ask& x) {
  return between_siblings(x) && whole_blocks(x.tokens);
}

bool valid(const prefix_offer& x) {
  return between_siblings(x) && x.tokens <= limits::context_tokens_max &&
         x.tokens % limits::block_tokens == 0;
}

bool valid(const kv_borrow& x) {
  return between_siblings(x) && whole_blocks(x.tokens) && x.block_count >= 1 &&
         (std::uint64_t{x.first_block} + x.block_count) * limits::block_tokens == x.tokens.size();
}

bool valid(const kv_loan& x) {
  return between_siblings(x) && x.first_block < blocks_max && x.blocks.size() <= blocks_max;
}

bool valid(const kv_return& x) {
  return between_siblings(x) && x.first_block < blocks_max;
}

bool valid(const kv_fill& x) {
  return siblings(x.to.replica, x.sibling) && x.to.index < limits::shards_max &&
         x.first_block < blocks_max && !x.copies.empty() && x.copies.size() <= blocks_max;
}

bool valid(const kv_filled& x) {
  return within_replica(x) && x.first_block < blocks_max;
}

bool valid(const kv_wish& x) {
  return between_shards(x) && x.tag != 0 && !x.blocks.empty() && x.blocks.size() <= blocks_max;
}

bool valid(const kv_parcel& x) {
  return between_shards(x);
}

} // namespace tokenrouter
