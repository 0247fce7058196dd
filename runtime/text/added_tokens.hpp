#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// A token that is matched in the text as a whole, before words are cut.
struct added_token {
  std::string content;
  token_id id = -1;
  bool special = false;    ///< left out of text that is shown
  bool lstrip = false;     ///< takes the white space before it with it
  bool rstrip = false;     ///< … and after it
  bool normalized = false; ///< matched in normalised text rather than in the text as given
};

struct added_match {
  std::size_t begin = 0; ///< of the text that it replaces, white space taken included
  std::size_t end = 0;
  token_id id = -1;
};

/// Finds added tokens in text: the leftmost, and of those the longest.
class added_token_finder {
 public:
  /// Requires non-empty contents.
  explicit added_token_finder(std::vector<added_token> tokens);

  /// The first match at or after `from`; white space before `from` is not taken.
  std::optional<added_match> find(std::string_view text, std::size_t from) const;

 private:
  std::vector<added_token> tokens_;                         ///< longest first
  std::array<std::vector<std::size_t>, 256> by_first_byte_; ///< into tokens_, longest first
};

} // namespace tokenrouter
