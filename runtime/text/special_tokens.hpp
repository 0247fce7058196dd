#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// A JSON object read from a file; an empty one if there is no such file. Error: malformed.
result<nlohmann::ordered_json> read_json_object(const std::filesystem::path& file);

/// The texts of a model's special tokens by their names in templates (`bos_token`, `eos_token`,
/// `pad_token`, …; `additional_special_tokens` is a list). What tokenizer_config.json has comes
/// first, special_tokens_map.json fills in. Tokens that are null are left out.
/// Error: malformed, naming the file.
result<nlohmann::ordered_json> read_special_tokens(const std::filesystem::path& model_folder);

} // namespace tokenrouter
