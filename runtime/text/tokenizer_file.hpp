#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/text/added_tokens.hpp"
#include "runtime/text/bpe.hpp"
#include "runtime/text/splitter.hpp"

namespace tokenrouter {

/// What a tokenizer.json holds, checked and turned into bytes.
struct tokenizer_file {
  std::vector<std::string> bytes_of; ///< by id; empty: no token
  std::array<token_id, 256> byte_tokens{};
  std::vector<bpe_merge> merges;
  std::vector<added_token> added;
  std::vector<splitter> splitters; ///< applied one after the other
  bool normalizes_to_nfc = false;
  bool ignore_merges = false;
};

/// Errors as tokenizer::load's.
result<tokenizer_file> read_tokenizer_file(const std::filesystem::path& path);

} // namespace tokenrouter
