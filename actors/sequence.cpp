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
  recalled = finished = false;
  starts = x.from == x.to;
  scored = scored && !starts;
  ready_since_us = now_us;
  peer_kv_tokens = std::move(x.kv_tokens);
  peer_kv_tokens.resize(models, 0);
  position_score = x.position_score;
  mix = std::move(x.mix);
  spec = std::move(x.spec);
  state = std::move(x.state);
}

void sequence::prepare(const role_needs& needs) {
  answers.clear();
  likeliest.clear();
  // A turn that comes back with nothing new: the last position runs again to propose.
  const std::uint32_t proposing = (judging ? committed_tokens() : length()) - 1;
  answer_from = proposing;
  if (needs.tail_positions > 1) {
    const std::uint32_t tail_from = length() - std::min(length(), needs.tail_positions);
    const auto known = static_cast<std::uint32_t>(tail_entropies.size());
    const std::uint32_t first = first_unknown(tail_from, known);
    if (first != kv_tokens)
      tail_entropies.clear();
    answer_from = std::min(answer_from, first);
  }
  if (needs.head_window_positions > 1) {
    const std::uint32_t before = std::min(proposing, needs.head_window_positions - 1);
    const std::uint32_t window_from = std::max(proposing - before, first_window_position());
    answer_from = std::min(answer_from, first_unknown(window_from, recorded_positions));
  }
  // The prompt as the model sees it that the request starts on.
  scoring = spec.prompt_logprobs && !scored && starts;
  if (scoring) {
    answer_from = 0;
    prompt_scores.assign(1, {tokens.front(), {}, {}});
  }
  cut_kv(answer_from);
}

void sequence::take_scores(const step_output& out, std::uint32_t answered) {
  if (spec.top_logprobs == 0 && !scoring)
    return;
  const std::uint32_t first = std::max(answer_from, kv_tokens);
  for (std::uint32_t i = 0; i < answered; ++i) {
    const step_row_output& one = answers[answers.size() - answered + i];
    std::vector<token_score> top;
    for (std::uint32_t k = 0; k < spec.top_logprobs; ++k)
      if (const auto& x = out.likeliest.at(one.likeliest_offset + k); x.token >= 0)
        top.push_back({x.token, {x.logprob}});
    if (scoring && first + i + 1 < spec.prompt_tokens)
      prompt_scores.push_back({tokens[first + i + 1], {one.scored_logprob}, top});
    likeliest.push_back(std::move(top));
  }
}

std::uint32_t sequence::first_unknown(std::uint32_t from, std::uint32_t known) const {
  return kv_tokens - known <= from ? std::max(kv_tokens, from) : from;
}

void sequence::advance(std::uint32_t count, bool from_cache) {
  recorded_positions = from_cache ? 0 : recorded_after(count);
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
  recorded_positions -= std::min(recorded_positions, static_cast<std::uint32_t>(lost));
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

std::uint32_t sequence::recorded_after(std::uint32_t count) const {
  const std::uint32_t answered = answered_in(count);
  return answered == count ? recorded_positions + count : answered;
}

std::uint32_t sequence::first_window_position() const {
  return spec.prompt_tokens - std::min(spec.prompt_tokens, 1u);
}

std::uint32_t sequence::window_start(std::uint32_t count) const {
  return std::max(kv_tokens + count - recorded_after(count), first_window_position());
}

} // namespace tokenrouter
