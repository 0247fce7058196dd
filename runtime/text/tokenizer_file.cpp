#include "runtime/text/tokenizer_file.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/text/byte_alphabet.hpp"
#include "runtime/text/normalize.hpp"
#include "runtime/text/utf8.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::json;

constexpr std::int64_t ids_max = 1 << 24;

/// The pattern that a ByteLevel pre-tokenizer brings with it (use_regex), as published with GPT-2.
constexpr const char* byte_level_pattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

const json& member(const json& object, const char* key) {
  static const json nothing;
  if (!object.is_object())
    return nothing;
  const auto it = object.find(key);
  return it == object.end() ? nothing : *it;
}

std::string text_member(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool flag(const json& object, const char* key, bool missing) {
  const json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : missing;
}

class file_reader {
 public:
  explicit file_reader(std::filesystem::path path) : path_(std::move(path)) {}

  result<tokenizer_file> read();

 private:
  using step = result<void>;

  tl::unexpected<error> malformed(const std::string& what) const {
    return fail(errc::malformed, path_.string() + ": " + what);
  }
  tl::unexpected<error> unsupported(const std::string& what) const {
    return fail(errc::mismatch,
                path_.string() + ": " + what + " is not supported; this reads byte-level BPE");
  }

  step read_vocabulary(const json& model);
  step read_byte_tokens();
  step read_merges(const json& model);
  step read_model(const json& model);
  step read_added(const json& list);
  step read_normalizer(const json& normalizer);
  step read_pre_tokenizer(const json& pre);
  step read_split(const json& pre);
  step read_byte_level(const json& pre);
  step read_frame(const json& root);
  step set_bytes(std::int64_t id, const std::string& bytes, const std::string& name);

  std::filesystem::path path_;
  tokenizer_file out_;
  std::unordered_map<std::string, token_id> ids_; ///< by the vocabulary's own spelling
  bool byte_level_ = false;
};

file_reader::step file_reader::set_bytes(std::int64_t id, const std::string& bytes,
                                         const std::string& name) {
  if (id < 0 || id >= ids_max)
    return malformed("token '" + name + "' has id " + std::to_string(id) + ", wanted 0 to " +
                     std::to_string(ids_max - 1));
  const auto index = static_cast<std::size_t>(id);
  if (out_.bytes_of.size() <= index)
    out_.bytes_of.resize(index + 1);
  if (!out_.bytes_of[index].empty() && out_.bytes_of[index] != bytes)
    return malformed("id " + std::to_string(id) + " belongs to two tokens, one of them '" + name +
                     "'");
  out_.bytes_of[index] = bytes;
  return {};
}

file_reader::step file_reader::read_vocabulary(const json& model) {
  const json& vocab = member(model, "vocab");
  if (!vocab.is_object() || vocab.empty())
    return malformed("model.vocab must be an object of token: id");
  ids_.reserve(vocab.size());
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_integer())
      return malformed("model.vocab: the id of '" + token + "' is not an integer");
    // A token that uses other characters is spelled in plain UTF-8.
    const auto value = id.get<std::int64_t>();
    if (auto set = set_bytes(value, from_byte_alphabet(token).value_or(token), token); !set)
      return set;
    ids_.emplace(token, static_cast<token_id>(value));
  }
  return {};
}

file_reader::step file_reader::read_byte_tokens() {
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string spelling;
    utf8::append_code_point(spelling, to_byte_alphabet(static_cast<std::uint8_t>(byte)));
    const auto found = ids_.find(spelling);
    if (found == ids_.end())
      return unsupported("a vocabulary without a token for byte " + std::to_string(byte) + " ('" +
                         spelling + "')");
    out_.byte_tokens[byte] = found->second;
  }
  return {};
}

file_reader::step file_reader::read_merges(const json& model) {
  const json& merges = member(model, "merges");
  if (!merges.is_array())
    return malformed("model.merges must be an array");
  out_.merges.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const json& merge = merges[i];
    const std::string where = "model.merges[" + std::to_string(i) + "]";
    std::string left, right;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
        return malformed(where + " must be two tokens with one space between them");
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      return malformed(where + " must be \"a b\" or [\"a\", \"b\"]");
    }
    bpe_merge ids;
    for (const auto& [token, id] : {std::pair{&left, &ids.left}, std::pair{&right, &ids.right}}) {
      const auto found = ids_.find(*token);
      if (found == ids_.end())
        return malformed(where + ": token '" + *token + "' is not in the vocabulary");
      *id = found->second;
    }
    const auto merged = ids_.find(left + right);
    if (merged == ids_.end())
      return malformed(where + ": token '" + left + right + "' is not in the vocabulary");
    ids.merged = merged->second;
    out_.merges.push_back(ids);
  }
  return {};
}

file_reader::step file_reader::read_model(const json& model) {
  if (text_member(model, "type") != "BPE")
    return unsupported("model type '" + text_member(model, "type") + "'");
  const json& dropout = member(model, "dropout");
  if (dropout.is_number() && dropout.get<double>() != 0)
    return unsupported("model.dropout");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!text_member(model, key).empty())
      return unsupported("model." + std::string(key));
  if (flag(model, "byte_fallback", false))
    return unsupported("model.byte_fallback");
  out_.ignore_merges = flag(model, "ignore_merges", false);
  if (auto read = read_vocabulary(model); !read)
    return read;
  if (auto read = read_byte_tokens(); !read)
    return read;
  return read_merges(model);
}

file_reader::step file_reader::read_added(const json& list) {
  if (list.is_null())
    return {};
  if (!list.is_array())
    return malformed("added_tokens must be an array");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = "added_tokens[" + std::to_string(i) + "]";
    added_token token;
    token.content = text_member(list[i], "content");
    const json& id = member(list[i], "id");
    if (token.content.empty() || !id.is_number_integer())
      return malformed(where + " must have a non-empty content and an integer id");
    if (flag(list[i], "single_word", false))
      return unsupported(where + " ('" + token.content + "'): single_word");
    token.special = flag(list[i], "special", false);
    token.lstrip = flag(list[i], "lstrip", false);
    token.rstrip = flag(list[i], "rstrip", false);
    token.normalized = flag(list[i], "normalized", !token.special);
    // The vocabulary may list an added token as well, in its own spelling.
    const auto listed = ids_.find(token.content);
    if (listed != ids_.end() && listed->second == id.get<std::int64_t>())
      out_.bytes_of[static_cast<std::size_t>(listed->second)].clear();
    if (auto set = set_bytes(id.get<std::int64_t>(), token.content, token.content); !set)
      return set;
    token.id = static_cast<token_id>(id.get<std::int64_t>());
    out_.added.push_back(std::move(token));
  }
  return {};
}

file_reader::step file_reader::read_normalizer(const json& normalizer) {
  if (normalizer.is_null())
    return {};
  const std::string type = text_member(normalizer, "type");
  if (type == "NFC") {
    out_.normalizes_to_nfc = true;
    return {};
  }
  const json& parts = member(normalizer, "normalizers");
  if (type != "Sequence" || !parts.is_array())
    return unsupported("normalizer '" + type + "'");
  for (const json& part : parts)
    if (auto read = read_normalizer(part); !read)
      return read;
  return {};
}

file_reader::step file_reader::read_split(const json& pre) {
  const std::string behavior = text_member(pre, "behavior");
  if (behavior != "Isolated")
    return unsupported("pre_tokenizer Split with behavior '" + behavior + "'");
  if (flag(pre, "invert", false))
    return unsupported("pre_tokenizer Split with invert");
  const json& pattern = member(pre, "pattern");
  const bool literal = member(pattern, "String").is_string();
  if (!literal && !member(pattern, "Regex").is_string())
    return malformed("pre_tokenizer Split needs a pattern with a String or a Regex");
  auto compiled = splitter::compile(text_member(pattern, literal ? "String" : "Regex"), literal);
  if (!compiled)
    return malformed("pre_tokenizer Split: " + compiled.error().message);
  out_.splitters.push_back(std::move(*compiled));
  return {};
}

file_reader::step file_reader::read_byte_level(const json& pre) {
  if (flag(pre, "add_prefix_space", true))
    return unsupported("pre_tokenizer ByteLevel with add_prefix_space");
  byte_level_ = true;
  if (!flag(pre, "use_regex", true))
    return {};
  auto compiled = splitter::compile(byte_level_pattern);
  if (!compiled)
    return tl::unexpected(compiled.error());
  out_.splitters.push_back(std::move(*compiled));
  return {};
}

file_reader::step file_reader::read_pre_tokenizer(const json& pre) {
  const std::string type = text_member(pre, "type");
  if (byte_level_)
    return unsupported("pre_tokenizer '" + type + "' after ByteLevel");
  if (type == "Split")
    return read_split(pre);
  if (type == "ByteLevel")
    return read_byte_level(pre);
  const json& parts = member(pre, "pretokenizers");
  if (type != "Sequence" || !parts.is_array())
    return unsupported("pre_tokenizer '" + type + "'");
  for (const json& part : parts)
    if (auto read = read_pre_tokenizer(part); !read)
      return read;
  return {};
}

/// Everything around the model. What a post-processor adds is for callers that want it; encode()
/// is of the text alone, so its kind does not matter beyond the two that are known to do only that.
file_reader::step file_reader::read_frame(const json& root) {
  if (auto read = read_normalizer(member(root, "normalizer")); !read)
    return read;
  if (auto read = read_pre_tokenizer(member(root, "pre_tokenizer")); !read)
    return read;
  if (!byte_level_)
    return unsupported("a pre_tokenizer without ByteLevel");
  if (text_member(member(root, "decoder"), "type") != "ByteLevel")
    return unsupported("decoder '" + text_member(member(root, "decoder"), "type") + "'");

  const json& post = member(root, "post_processor");
  std::vector<const json*> processors;
  if (text_member(post, "type") == "Sequence")
    for (const json& part : member(post, "processors"))
      processors.push_back(&part);
  else if (!post.is_null())
    processors.push_back(&post);
  for (const json* processor : processors) {
    const std::string type = text_member(*processor, "type");
    if (type != "ByteLevel" && type != "TemplateProcessing")
      return unsupported("post_processor '" + type + "'");
  }
  return {};
}

result<tokenizer_file> file_reader::read() {
  std::ifstream stream(path_, std::ios::binary);
  if (!stream)
    return fail(errc::not_found, path_.string() + ": cannot be read");
  const json root = json::parse(stream, nullptr, false);
  if (!root.is_object())
    return malformed("is not a JSON object");
  if (auto read = read_frame(root); !read)
    return tl::unexpected(read.error());
  if (auto read = read_model(member(root, "model")); !read)
    return tl::unexpected(read.error());
  if (auto read = read_added(member(root, "added_tokens")); !read)
    return tl::unexpected(read.error());
  return std::move(out_);
}

} // namespace

result<tokenizer_file> read_tokenizer_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return file_reader(std::filesystem::is_directory(path, ignored) ? path / "tokenizer.json" : path)
      .read();
}

} // namespace tokenrouter
