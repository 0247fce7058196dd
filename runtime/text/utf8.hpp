#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// UTF-8 as Unicode 15 table 3-7 defines it: no surrogates, no overlong forms, nothing above
/// U+10FFFF.
namespace tokenrouter::utf8 {

enum class unit_kind : std::uint8_t {
  character,  ///< a whole, valid character
  invalid,    ///< bytes that no continuation makes valid
  incomplete, ///< the text ends inside what may become a character
};

struct unit {
  unit_kind kind = unit_kind::invalid;
  /// Of `invalid` and `incomplete`: the maximal subpart, 1 to 3 bytes, which is what one U+FFFD
  /// stands for (Unicode 15, 3.9, best practice).
  std::size_t bytes = 0;
};

/// The unit at the front of `text`. Requires non-empty text.
unit front_unit(std::string_view text);

/// Bytes at the front of `text` that are whole, valid characters.
std::size_t valid_prefix_bytes(std::string_view text);

bool is_valid(std::string_view text);

/// The code point of the character at the front of `text`. Requires that it is valid.
char32_t front_code_point(std::string_view text);

void append_code_point(std::string& out, char32_t code_point);

/// U+FFFD in UTF-8.
inline constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// `text` with one U+FFFD for each invalid or incomplete unit.
std::string replace_invalid(std::string_view text);

} // namespace tokenrouter::utf8
