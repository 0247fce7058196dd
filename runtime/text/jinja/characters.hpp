#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Text as Python's str sees it: characters (and units that are not UTF-8, each one character).
namespace tokenrouter::jinja {

std::vector<std::string_view> characters(std::string_view bytes);
std::size_t character_count(std::string_view bytes);

/// Bytes before character `index`; all of them if there are fewer characters.
std::size_t byte_offset(std::string_view bytes, std::size_t index);

/// str.isspace() of one character.
bool is_white(std::string_view character);

/// `chars`: the characters to strip; white space if null.
std::string_view strip_left(std::string_view bytes, const std::string* chars = nullptr);
std::string_view strip_right(std::string_view bytes, const std::string* chars = nullptr);

/// Python's, with Unicode's simple mappings and the sharp s and ligatures in full; a sigma's place
/// in its word is not looked at.
std::string to_upper(std::string_view bytes);
std::string to_lower(std::string_view bytes);
std::string capitalize(std::string_view bytes);
std::string title_case(std::string_view bytes); ///< str.title()

bool is_upper(std::string_view character);
bool is_lower(std::string_view character);
bool is_alpha(std::string_view character);
bool is_digit(std::string_view character);
bool is_printable(std::string_view character);

/// str.isupper() or str.islower(): it has cased characters, and all are of that case.
bool is_cased_as(std::string_view bytes, bool upper);

/// str.splitlines(keepends).
std::vector<std::string_view> split_lines(std::string_view bytes, bool keep_ends = false);

/// str.split(None, max) and str.rsplit(None, max); a negative `max` is none.
std::vector<std::string_view> split_white(std::string_view bytes, std::ptrdiff_t max,
                                          bool from_right);
/// str.split(by, max) and str.rsplit(by, max). Requires a non-empty `by`.
std::vector<std::string_view> split_by(std::string_view bytes, std::string_view by,
                                       std::ptrdiff_t max, bool from_right);

/// HTML's five characters as Markup writes them.
std::string escape_html(std::string_view bytes);

} // namespace tokenrouter::jinja
