#include "runtime/text/jinja/characters.hpp"

#include <algorithm>
#include <iterator>

#include <utf8proc.h>

#include "runtime/text/normalize.hpp"
#include "runtime/text/utf8.hpp"

namespace tokenrouter::jinja {

namespace {

constexpr char32_t no_character = 0xFFFFFFFF;

char32_t code_of(std::string_view character) {
  if (character.empty() || utf8::front_unit(character).kind != utf8::unit_kind::character)
    return no_character;
  return utf8::front_code_point(character);
}

std::string_view first_of(std::string_view bytes) {
  return bytes.substr(0, utf8::front_unit(bytes).bytes);
}

std::string_view last_of(std::string_view bytes) {
  std::size_t at = bytes.size() - 1;
  while (at > 0 && bytes.size() - at < 4 && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80)
    --at;
  // The last unit of text whose tail is not UTF-8 is found from the front of that tail.
  std::string_view tail = bytes.substr(at);
  while (first_of(tail).size() < tail.size())
    tail.remove_prefix(first_of(tail).size());
  return tail;
}

bool is_one_of(std::string_view character, const std::string* chars) {
  if (!chars)
    return is_white(character);
  std::string_view rest = *chars;
  while (!rest.empty()) {
    const auto one = first_of(rest);
    if (one == character)
      return true;
    rest.remove_prefix(one.size());
  }
  return false;
}

utf8proc_category_t category_of(std::string_view character) {
  const char32_t code = code_of(character);
  return code == no_character ? UTF8PROC_CATEGORY_CN
                              : utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

template <class Map>
void append_mapped(std::string& out, std::string_view character, Map map) {
  const char32_t code = code_of(character);
  if (code == no_character)
    out += character;
  else
    utf8::append_code_point(out, static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(code))));
}

/// Letters that become several.
struct long_case {
  std::string_view letter;
  std::string_view upper;
  std::string_view title;
};

constexpr long_case long_cases[] = {
    {"\u00DF", "SS", "Ss"}, {"\uFB00", "FF", "Ff"},   {"\uFB01", "FI", "Fi"},
    {"\uFB02", "FL", "Fl"}, {"\uFB03", "FFI", "Ffi"}, {"\uFB04", "FFL", "Ffl"},
    {"\uFB05", "ST", "St"}, {"\uFB06", "ST", "St"},
};

void append_upper(std::string& out, std::string_view character, bool title) {
  const auto* found = std::ranges::find(long_cases, character, &long_case::letter);
  if (found != std::end(long_cases))
    out += title ? found->title : found->upper;
  else
    append_mapped(out, character, title ? utf8proc_totitle : utf8proc_toupper);
}

template <class Map>
std::string mapped(std::string_view bytes, Map map) {
  std::string out;
  out.reserve(bytes.size());
  for (const auto one : characters(bytes))
    append_mapped(out, one, map);
  return out;
}

bool is_line_break(std::string_view character) {
  const char32_t code = code_of(character);
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

} // namespace

std::vector<std::string_view> characters(std::string_view bytes) {
  std::vector<std::string_view> out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    out.push_back(first_of(bytes));
    bytes.remove_prefix(out.back().size());
  }
  return out;
}

std::size_t character_count(std::string_view bytes) {
  std::size_t count = 0;
  for (; !bytes.empty(); ++count)
    bytes.remove_prefix(first_of(bytes).size());
  return count;
}

std::size_t byte_offset(std::string_view bytes, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < bytes.size(); --index)
    at += first_of(bytes.substr(at)).size();
  return at;
}

bool is_white(std::string_view character) {
  const char32_t code = code_of(character);
  return code != no_character && (is_space(code) || (code >= 0x1C && code <= 0x1F));
}

std::string_view strip_left(std::string_view bytes, const std::string* chars) {
  while (!bytes.empty() && is_one_of(first_of(bytes), chars))
    bytes.remove_prefix(first_of(bytes).size());
  return bytes;
}

std::string_view strip_right(std::string_view bytes, const std::string* chars) {
  while (!bytes.empty() && is_one_of(last_of(bytes), chars))
    bytes.remove_suffix(last_of(bytes).size());
  return bytes;
}

std::string to_upper(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (const auto one : characters(bytes))
    append_upper(out, one, false);
  return out;
}

std::string to_lower(std::string_view bytes) {
  return mapped(bytes, utf8proc_tolower);
}

std::string capitalize(std::string_view bytes) {
  if (bytes.empty())
    return {};
  std::string out;
  const auto first = first_of(bytes);
  append_upper(out, first, true);
  return out + to_lower(bytes.substr(first.size()));
}

std::string title_case(std::string_view bytes) {
  std::string out;
  bool inside = false;
  for (const auto one : characters(bytes)) {
    if (inside)
      append_mapped(out, one, utf8proc_tolower);
    else
      append_upper(out, one, true);
    inside = is_upper(one) || is_lower(one) || category_of(one) == UTF8PROC_CATEGORY_LT;
  }
  return out;
}

bool is_upper(std::string_view character) {
  return category_of(character) == UTF8PROC_CATEGORY_LU;
}

bool is_lower(std::string_view character) {
  return category_of(character) == UTF8PROC_CATEGORY_LL;
}

bool is_alpha(std::string_view character) {
  const auto category = category_of(character);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(std::string_view character) {
  return category_of(character) == UTF8PROC_CATEGORY_ND;
}

bool is_printable(std::string_view character) {
  const auto category = category_of(character);
  return character == " " || (category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS);
}

bool is_cased_as(std::string_view bytes, bool upper) {
  bool found = false;
  for (const auto one : characters(bytes)) {
    if (upper ? is_lower(one) : is_upper(one))
      return false;
    found = found || (upper ? is_upper(one) : is_lower(one));
  }
  return found;
}

std::vector<std::string_view> split_lines(std::string_view bytes, bool keep_ends) {
  std::vector<std::string_view> out;
  std::size_t start = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto one = first_of(bytes.substr(at));
    std::size_t next = at + one.size();
    if (is_line_break(one)) {
      if (one == "\r" && bytes.substr(next, 1) == "\n")
        ++next;
      out.push_back(bytes.substr(start, (keep_ends ? next : at) - start));
      start = next;
    }
    at = next;
  }
  if (start < bytes.size())
    out.push_back(bytes.substr(start));
  return out;
}

std::vector<std::string_view> split_white(std::string_view bytes, std::ptrdiff_t max,
                                          bool from_right) {
  std::vector<std::string_view> out;
  const auto strip = [&] { bytes = from_right ? strip_right(bytes) : strip_left(bytes); };
  for (strip(); !bytes.empty(); strip()) {
    if (max >= 0 && static_cast<std::ptrdiff_t>(out.size()) == max) {
      out.push_back(bytes); // the far end keeps its blanks, as in Python
      break;
    }
    std::size_t word = 0;
    if (from_right) {
      while (word < bytes.size() && !is_white(last_of(bytes.substr(0, bytes.size() - word))))
        word += last_of(bytes.substr(0, bytes.size() - word)).size();
      out.push_back(bytes.substr(bytes.size() - word));
      bytes.remove_suffix(word);
    } else {
      while (word < bytes.size() && !is_white(first_of(bytes.substr(word))))
        word += first_of(bytes.substr(word)).size();
      out.push_back(bytes.substr(0, word));
      bytes.remove_prefix(word);
    }
  }
  if (from_right)
    std::ranges::reverse(out);
  return out;
}

std::vector<std::string_view> split_by(std::string_view bytes, std::string_view by,
                                       std::ptrdiff_t max, bool from_right) {
  std::vector<std::string_view> out;
  while (max < 0 || static_cast<std::ptrdiff_t>(out.size()) < max) {
    const std::size_t at = from_right ? bytes.rfind(by) : bytes.find(by);
    if (at == std::string_view::npos)
      break;
    if (from_right) {
      out.push_back(bytes.substr(at + by.size()));
      bytes = bytes.substr(0, at);
    } else {
      out.push_back(bytes.substr(0, at));
      bytes.remove_prefix(at + by.size());
    }
  }
  out.push_back(bytes);
  if (from_right)
    std::ranges::reverse(out);
  return out;
}

std::string escape_html(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&#34;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
    }
  }
  return out;
}

} // namespace tokenrouter::jinja
