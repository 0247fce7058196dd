#include "runtime/text/special_tokens.hpp"

#include <fstream>

#include <nlohmann/json.hpp>

namespace tokenrouter {

namespace {

using json = nlohmann::ordered_json;

constexpr const char* single_names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};

/// A token is written as its text or as an object with it; null if it is neither.
json text_of(const json& token) {
  if (token.is_string())
    return token;
  if (token.is_object() && token.contains("content") && token["content"].is_string())
    return token["content"];
  return nullptr;
}

void take_tokens(const json& from, json& into) {
  for (const char* name : single_names)
    if (const auto found = from.find(name); found != from.end() && !into.contains(name))
      if (json text = text_of(*found); text.is_string())
        into[name] = std::move(text);
  const auto more = from.find("additional_special_tokens");
  if (more == from.end() || !more->is_array() || into.contains("additional_special_tokens"))
    return;
  json list = json::array();
  for (const json& token : *more)
    if (json text = text_of(token); text.is_string())
      list.push_back(std::move(text));
  if (!list.empty())
    into["additional_special_tokens"] = std::move(list);
}

} // namespace

result<json> read_json_object(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return json::object();
  json root = json::parse(stream, nullptr, false);
  if (!root.is_object())
    return fail(errc::malformed, file.string() + ": is not a JSON object");
  return root;
}

result<json> read_special_tokens(const std::filesystem::path& model_folder) {
  json out = json::object();
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    auto root = read_json_object(model_folder / name);
    if (!root)
      return root;
    take_tokens(*root, out);
  }
  return out;
}

} // namespace tokenrouter
