#include "runtime/text/bpe.hpp"

#include <algorithm>

namespace tokenrouter {

namespace {

constexpr std::size_t cached_words_max = 1u << 16;
constexpr std::size_t cached_word_bytes_max = 64;
constexpr std::uint32_t no_symbol = ~0u;

std::uint64_t pair_key(token_id left, token_id right) {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
         static_cast<std::uint32_t>(right);
}

} // namespace

bpe::bpe(const std::vector<std::string>& bytes_of, const std::array<token_id, 256>& byte_tokens,
         const std::vector<bpe_merge>& merges, bool ignore_merges)
    : byte_tokens_(byte_tokens) {
  rules_.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank)
    rules_.try_emplace(pair_key(merges[rank].left, merges[rank].right),
                       rule{static_cast<std::uint32_t>(rank), merges[rank].merged});
  if (ignore_merges)
    for (std::size_t id = 0; id < bytes_of.size(); ++id)
      if (!bytes_of[id].empty())
        words_.try_emplace(bytes_of[id], static_cast<token_id>(id));
}

void bpe::encode(std::string_view word, std::vector<token_id>& out) {
  if (word.empty())
    return;
  if (const auto whole = words_.find(word); whole != words_.end()) {
    out.push_back(whole->second);
    return;
  }
  if (word.size() > cached_word_bytes_max) {
    merge_word(word, out);
    return;
  }
  auto cached = cache_.find(word);
  if (cached == cache_.end()) {
    if (cache_.size() >= cached_words_max)
      cache_.clear();
    std::vector<token_id> tokens;
    merge_word(word, tokens);
    cached = cache_.emplace(std::string(word), std::move(tokens)).first;
  }
  out.insert(out.end(), cached->second.begin(), cached->second.end());
}

void bpe::push_candidate(std::uint32_t at) {
  const std::uint32_t next = symbols_[at].next;
  if (next == no_symbol)
    return;
  const token_id left = symbols_[at].id, right = symbols_[next].id;
  const auto found = rules_.find(pair_key(left, right));
  if (found == rules_.end())
    return;
  heap_.push_back({found->second.rank, at, left, right, found->second.merged});
  std::ranges::push_heap(heap_, [](const candidate& a, const candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  });
}

void bpe::merge_word(std::string_view word, std::vector<token_id>& out) {
  const auto count = static_cast<std::uint32_t>(word.size());
  symbols_.clear();
  heap_.clear();
  for (std::uint32_t i = 0; i < count; ++i)
    symbols_.push_back({byte_token(word[i]), i - 1, i + 1 < count ? i + 1 : no_symbol});
  for (std::uint32_t i = 0; i + 1 < count; ++i)
    push_candidate(i);

  while (!heap_.empty()) {
    const candidate best = heap_.front();
    std::ranges::pop_heap(heap_, [](const candidate& a, const candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
    });
    heap_.pop_back();
    symbol& left = symbols_[best.at];
    // An entry is stale once either side has been merged into something else.
    if (left.id != best.left || left.next == no_symbol || symbols_[left.next].id != best.right)
      continue;
    symbol& right = symbols_[left.next];
    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next != no_symbol)
      symbols_[left.next].previous = best.at;
    push_candidate(best.at);
    if (left.previous != no_symbol)
      push_candidate(left.previous);
  }
  for (std::uint32_t at = 0; at != no_symbol; at = symbols_[at].next)
    out.push_back(symbols_[at].id);
}

} // namespace tokenrouter
