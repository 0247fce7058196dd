#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "runtime/text/added_tokens.hpp"
#include "runtime/text/bpe.hpp"
#include "runtime/text/normalize.hpp"
#include "runtime/text/tokenizer_file.hpp"
#include "runtime/text/utf8.hpp"

namespace tokenrouter {

namespace {

/// Calls `on_text` and `on_byte` with the valid stretches of `text` and the bytes between them.
template <class OnText, class OnByte>
void for_each_stretch(std::string_view text, OnText&& on_text, OnByte&& on_byte) {
  while (!text.empty()) {
    if (const std::size_t valid = utf8::valid_prefix_bytes(text); valid > 0) {
      on_text(text.substr(0, valid));
      text.remove_prefix(valid);
    }
    for (; !text.empty() && utf8::front_unit(text).kind != utf8::unit_kind::character;
         text.remove_prefix(1))
      on_byte(text.front());
  }
}

std::vector<added_token> pick(const std::vector<added_token>& all, bool normalized) {
  std::vector<added_token> out;
  for (const added_token& token : all)
    if (token.normalized == normalized)
      out.push_back(token);
  return out;
}

std::uint64_t fnv1a(std::uint64_t hash, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i)
    hash = (hash ^ at[i]) * 0x100000001B3u;
  return hash;
}

std::uint64_t fnv1a_number(std::uint64_t hash, std::uint64_t number) {
  unsigned char bytes[8];
  for (unsigned char& byte : bytes) {
    byte = static_cast<unsigned char>(number & 0xFF);
    number >>= 8;
  }
  return fnv1a(hash, bytes, sizeof bytes);
}

} // namespace

struct tokenizer::parts {
  std::vector<std::string> bytes_of;
  std::vector<bool> special;
  std::unordered_map<std::string, token_id> added_ids;
  std::vector<splitter> splitters;
  bool normalizes_to_nfc = false;
  added_token_finder raw_added;
  added_token_finder normalized_added;
  bpe words;
  std::uint64_t fingerprint = 0;
  std::mutex encoding; ///< guards words and splitters

  explicit parts(tokenizer_file file)
      : splitters(std::move(file.splitters)), normalizes_to_nfc(file.normalizes_to_nfc),
        raw_added(pick(file.added, false)), normalized_added(normalised(pick(file.added, true))),
        words(file.bytes_of, file.byte_tokens, file.merges, file.ignore_merges) {
    bytes_of = std::move(file.bytes_of);
    special.resize(bytes_of.size());
    for (const added_token& token : file.added) {
      special[static_cast<std::size_t>(token.id)] = token.special;
      added_ids.emplace(token.content, token.id);
    }
    fingerprint = fingerprint_below(bytes_of.size());
  }

  std::uint64_t fingerprint_below(std::size_t ids) const {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (std::size_t id = 0; id < std::min(ids, bytes_of.size()); ++id) {
      hash = fnv1a_number(hash, id);
      hash = fnv1a_number(hash, bytes_of[id].size());
      hash = fnv1a(hash, bytes_of[id].data(), bytes_of[id].size());
    }
    return hash;
  }

  std::vector<added_token> normalised(std::vector<added_token> tokens) const {
    for (added_token& token : tokens)
      token.content = normal_form(token.content);
    return tokens;
  }

  std::string normal_form(std::string_view valid) const {
    return normalizes_to_nfc ? to_nfc(valid) : std::string(valid);
  }

  result<void> encode_words(std::string_view text, std::size_t level, std::vector<token_id>& out) {
    if (level == splitters.size()) {
      words.encode(text, out);
      return {};
    }
    return splitters[level].split(
        text, [&](std::string_view piece) { return encode_words(piece, level + 1, out); });
  }

  /// Text between added tokens that are matched as given.
  result<void> encode_stretch(std::string_view text, std::vector<token_id>& out) {
    result<void> done;
    for_each_stretch(
        text,
        [&](std::string_view valid) {
          const std::string normal = normal_form(valid);
          if (done)
            done = split_at(normalized_added, normal, out,
                            [&](std::string_view plain) { return encode_words(plain, 0, out); });
        },
        [&](char byte) { out.push_back(words.byte_token(byte)); });
    return done;
  }

  template <class OnText>
  result<void> split_at(const added_token_finder& finder, std::string_view text,
                        std::vector<token_id>& out, OnText&& on_text) {
    std::size_t at = 0;
    while (const auto match = finder.find(text, at)) {
      if (match->begin > at)
        if (auto done = on_text(text.substr(at, match->begin - at)); !done)
          return done;
      out.push_back(match->id);
      at = match->end;
    }
    return at < text.size() ? on_text(text.substr(at)) : result<void>{};
  }
};

tokenizer::tokenizer(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
tokenizer::tokenizer(tokenizer&&) noexcept = default;
tokenizer& tokenizer::operator=(tokenizer&&) noexcept = default;
tokenizer::~tokenizer() = default;

result<tokenizer> tokenizer::load(const std::filesystem::path& path) {
  auto file = read_tokenizer_file(path);
  if (!file)
    return tl::unexpected(file.error());
  return tokenizer(std::make_unique<parts>(std::move(*file)));
}

result<std::vector<token_id>> tokenizer::encode(std::string_view text) const {
  const std::lock_guard lock(parts_->encoding);
  std::vector<token_id> out;
  auto done = parts_->split_at(parts_->raw_added, text, out, [&](std::string_view between) {
    return parts_->encode_stretch(between, out);
  });
  if (!done)
    return tl::unexpected(done.error());
  return out;
}

std::string tokenizer::decode(std::span<const token_id> ids, bool skip_special) const {
  std::string out;
  for (const token_id id : ids)
    if (!skip_special || !is_special(id))
      out += token_bytes(id);
  return out;
}

std::string_view tokenizer::token_bytes(token_id id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= parts_->bytes_of.size())
    return {};
  return parts_->bytes_of[static_cast<std::size_t>(id)];
}

bool tokenizer::is_special(token_id id) const {
  return id >= 0 && static_cast<std::size_t>(id) < parts_->special.size() &&
         parts_->special[static_cast<std::size_t>(id)];
}

std::optional<token_id> tokenizer::added_token_id(std::string_view content) const {
  const auto found = parts_->added_ids.find(std::string(content));
  return found == parts_->added_ids.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t tokenizer::vocab_tokens() const {
  return static_cast<std::uint32_t>(parts_->bytes_of.size());
}

std::uint64_t tokenizer::fingerprint() const {
  return parts_->fingerprint;
}

std::uint64_t tokenizer::fingerprint_below(std::uint32_t ids) const {
  return parts_->fingerprint_below(ids);
}

std::string tokenizer::normalize(std::string_view text) const {
  std::string out;
  for_each_stretch(
      text, [&](std::string_view valid) { out += parts_->normal_form(valid); },
      [&](char byte) { out += byte; });
  return out;
}

} // namespace tokenrouter
