#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// Two neighbouring tokens and what they become; a smaller rank goes first.
struct bpe_merge {
  token_id left = -1;
  token_id right = -1;
  token_id merged = -1;
};

/// Byte-pair encoding of single words: always the pair of the smallest rank, leftmost first. One
/// thread at a time (it keeps memory and a cache of words).
class bpe {
 public:
  /// `bytes_of`: token bytes by id, for whole-word look-up; `byte_tokens`: the token of each byte;
  /// `merges` in the order of their ranks; `ignore_merges`: a word that is a token is that token.
  bpe(const std::vector<std::string>& bytes_of, const std::array<token_id, 256>& byte_tokens,
      const std::vector<bpe_merge>& merges, bool ignore_merges);

  /// Appends the tokens of `word` to `out`; n log n in its bytes.
  void encode(std::string_view word, std::vector<token_id>& out);

  token_id byte_token(char byte) const { return byte_tokens_[static_cast<std::uint8_t>(byte)]; }

 private:
  struct rule {
    std::uint32_t rank = 0;
    token_id merged = -1;
  };
  struct symbol {
    token_id id = -1; ///< -1: merged into its left neighbour
    std::uint32_t previous = 0;
    std::uint32_t next = 0;
  };
  struct candidate {
    std::uint32_t rank = 0;
    std::uint32_t at = 0; ///< symbol on the left
    token_id left = -1;
    token_id right = -1;
    token_id merged = -1;
  };
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
    std::size_t operator()(std::uint64_t pair) const {
      pair *= 0x9E3779B97F4A7C15u;
      return static_cast<std::size_t>(pair ^ (pair >> 32));
    }
  };

  void merge_word(std::string_view word, std::vector<token_id>& out);
  void push_candidate(std::uint32_t at);

  std::array<token_id, 256> byte_tokens_;
  std::unordered_map<std::uint64_t, rule, hash> rules_; ///< by left << 32 | right
  std::unordered_map<std::string, token_id, hash, std::equal_to<>> words_; ///< if ignore_merges
  std::unordered_map<std::string, std::vector<token_id>, hash, std::equal_to<>> cache_;
  std::vector<symbol> symbols_;
  std::vector<candidate> heap_;
};

} // namespace tokenrouter
