#include "actors/kv_messages.hpp"

#include <algorithm>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

/// Siblings are different replicas of one model.
template <class Message>
bool between_siblings(const Message& x) {
  return x.from.model == x.to.model && x.from != x.to && x.from.model.value < limits::models_max &&
         std::max(x.from.index, x.to.index) < limits::replicas_max;
}

bool whole_blocks(const std::vector<token_id>& tokens) {
  return !tokens.empty() && tokens.size() % limits::block_tokens == 0 &&
         tokens.size() <= limits::context_tokens_max &&
         std::all_of(tokens.begin(), tokens.end(), [](token_id t) { return t >= 0; });
}

constexpr std::uint32_t blocks_max = limits::context_tokens_max / limits::block_tokens;

} // namespace

bool valid(const kv_greeting& x) {
  return between_siblings(x) && x.address.size() <= limits::kv_address_bytes_max;
}

bool valid(const prefix_ask& x) {
  return between_siblings(x) && whole_blocks(x.tokens);
}

bool valid(const prefix_offer& x) {
  return between_siblings(x) && x.tokens <= limits::context_tokens_max &&
         x.tokens % limits::block_tokens == 0;
}

bool valid(const kv_fetch& x) {
  return between_siblings(x) && whole_blocks(x.tokens) && x.block_count >= 1 &&
         (std::uint64_t{x.first_block} + x.block_count) * limits::block_tokens == x.tokens.size();
}

bool valid(const kv_piece& x) {
  return between_siblings(x) && x.first_block < blocks_max && x.blocks.size() <= blocks_max &&
         (x.given || x.blocks.empty());
}

bool valid(const kv_read& x) {
  return between_siblings(x) && x.first_block < blocks_max;
}

} // namespace tokenrouter
