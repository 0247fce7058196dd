#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenrouter::jinja {

enum class token_kind : std::uint8_t {
  data, ///< text outside tags, as it is written out
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string, ///< without quotes, escapes resolved
  integer,
  real,
  symbol, ///< an operator or bracket; its spelling is the token's text
  end,
};

struct token {
  token_kind kind = token_kind::end;
  std::uint32_t line = 1;
  std::string text;
};

/// A template's tokens, ended by one of kind `end`. White space is controlled as in a Jinja2
/// environment with trim_blocks and lstrip_blocks (what Hugging Face renders with): `-` strips all
/// of it on its side, `+` keeps it, a line break after a block or comment is dropped, and so are
/// blanks before one on its line; one line break at the template's end is dropped.
/// Fault: with the line; a character that opens no token, unbalanced brackets, an open comment.
std::vector<token> tokenize(std::string_view source);

/// The text that a string literal's inside stands for (Python's escapes). Faults: a bad escape, a
/// surrogate, \N.
std::string unescape(std::string_view inside);

} // namespace tokenrouter::jinja
