#include "actors/sequence.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"

namespace tokenrouter {

void sequence::take(handoff&& x, std::uint32_t models, std::uint64_t now_us) {
  std::uint32_t same = std::min(x.offset, length());
  for (const token_id token : x.tokens) {
    if (same == length() || tokens[same] != token)
      break;
    ++same;
  }
  cut_kv(same);
  tokens.resize(x.offset);
  tokens.insert(tokens.end(), x.tokens.begin(), x.tokens.end());
  tentative = std::move(x.tentative);
  judging = !tentative.empty();
  turn = x.turn;
  has_turn = true;
  ready_since_us = now_us;
  peer_kv_tokens = std::move(x.kv_tokens);
  peer_kv_tokens.resize(models, 0);
  position_score = x.position_score;
  mix = std::move(x.mix);
  spec = std::move(x.spec);
  state = std::move(x.state);
}

void sequence::prepare(std::uint32_t tail_positions) {
  answers.clear();
  // A turn that comes back with nothing new: the last position runs again to propose.
  answer_from = (judging ? committed_tokens() : length()) - 1;
  if (tail_positions > 1) {
    const std::uint32_t tail_from = length() - std::min(length(), tail_positions);
    const auto known_from = kv_tokens - static_cast<std::uint32_t>(tail_entropies.size());
    const bool known = known_from <= tail_from && tail_from <= kv_tokens;
    if (!known)
      tail_entropies.clear();
    answer_from = std::min(answer_from, known ? kv_tokens : tail_from);
  }
  cut_kv(answer_from);
}

void sequence::advance(std::uint32_t count, bool from_cache) {
  (from_cache ? cached_tokens : computed_tokens) += count;
  if (kv_tokens < kv_reached_tokens)
    recomputed_tokens += std::min(count, kv_reached_tokens - kv_tokens);
  kv_tokens += count;
  kv_reached_tokens = std::max(kv_reached_tokens, kv_tokens);
  if (from_cache)
    tail_entropies.clear();
}

void sequence::cut_kv(std::uint32_t kv_tokens_left) {
  if (kv_tokens_left >= kv_tokens)
    return;
  const std::size_t lost = kv_tokens - kv_tokens_left;
  tail_entropies.resize(tail_entropies.size() - std::min(tail_entropies.size(), lost));
  kv_tokens = kv_tokens_left;
}

std::uint32_t sequence::drop_tentative(std::size_t first) {
  check(first <= tentative.size(), "only tentative tokens are taken back");
  const auto dropped = static_cast<std::uint32_t>(tentative.size() - first);
  tentative.resize(first);
  tokens.resize(tokens.size() - dropped);
  cut_kv(length());
  for (auto& kv : peer_kv_tokens)
    kv = std::min(kv, length());
  return dropped;
}

std::uint32_t sequence::answered_in(std::uint32_t count) const {
  const std::uint32_t end = kv_tokens + count;
  return end <= answer_from ? 0 : end - std::max(answer_from, kv_tokens);
}

} // namespace tokenrouter
