#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// A byte-level BPE tokenizer as Hugging Face's tokenizer.json describes it. Const members may be
/// called by several threads; encoders wait for each other.
///
/// Text need not be valid UTF-8. A byte that is not part of a valid character becomes that byte's
/// own token and takes part in neither normalisation nor word splitting, so for every `text`
/// decode(encode(text)) == normalize(text), and that is `text` itself unless a valid stretch of it
/// is not in the tokenizer's normal form (or an added token takes white space with it).
class tokenizer {
 public:
  /// `path`: a tokenizer.json or a folder with one. Errors, each naming the file: not_found,
  /// malformed, mismatch (a component that is not supported, by its name).
  static result<tokenizer> load(const std::filesystem::path& path);

  tokenizer(tokenizer&&) noexcept;
  tokenizer& operator=(tokenizer&&) noexcept;
  ~tokenizer();

  /// Ids of exactly this text: added tokens in it are recognised, none is put before or after it.
  /// Error: capacity (see splitter).
  result<std::vector<token_id>> encode(std::string_view text) const;

  /// Bytes of the tokens, joined; not necessarily UTF-8. Ids without a token give nothing.
  std::string decode(std::span<const token_id> ids, bool skip_special = false) const;

  /// Empty for an id without a token (holes, padding of a model's vocabulary, negative ids).
  std::string_view token_bytes(token_id id) const;

  bool is_special(token_id id) const;
  std::optional<token_id> added_token_id(std::string_view content) const;

  /// One more than the highest id.
  std::uint32_t vocab_tokens() const;

  /// FNV-1a 64 over (id, length, bytes) of every token: equal for vocabularies that may exchange
  /// ids, and for no others.
  std::uint64_t fingerprint() const;

  /// The same over the tokens with ids below `ids` only.
  std::uint64_t fingerprint_below(std::uint32_t ids) const;

  /// What a round trip makes of a text: its valid stretches normalised, all else kept.
  std::string normalize(std::string_view text) const;

 private:
  struct parts;
  explicit tokenizer(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

} // namespace tokenrouter
