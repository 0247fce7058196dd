#include <charconv>
#include <cstdio>

#include "runtime/text/jinja/fault.hpp"
#include "runtime/text/jinja/lexer.hpp"
#include "runtime/text/utf8.hpp"

namespace tokenrouter::jinja {

namespace {

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

/// The `digits` hexadecimal digits at the front of `rest`, taken off it.
char32_t take_hex(std::string_view& rest, std::size_t digits) {
  std::uint32_t code = 0;
  const auto taken = rest.substr(0, digits);
  const auto [end, ec] = std::from_chars(taken.data(), taken.data() + taken.size(), code, 16);
  if (taken.size() != digits || ec != std::errc{} || end != taken.data() + digits)
    raise("a string has a truncated \\x, \\u or \\U escape");
  rest.remove_prefix(digits);
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
    raise("a string has an escape that is no character");
  return code;
}

/// Python reads a literal by way of ASCII, in which a character beyond it is an escape itself: one
/// that a backslash precedes comes out spelt.
void append_spelt(std::string& out, std::string_view& rest) {
  const std::size_t bytes = utf8::front_unit(rest).bytes;
  if (utf8::front_unit(rest).kind != utf8::unit_kind::character)
    raise("a string is not UTF-8");
  const auto code = static_cast<std::uint32_t>(utf8::front_code_point(rest));
  char spelt[16];
  const char* form = code < 0x100 ? "x%02x" : code < 0x10000 ? "u%04x" : "U%08x";
  std::snprintf(spelt, sizeof spelt, form, code);
  out += '\\';
  out += spelt;
  rest.remove_prefix(bytes);
}

void append_escape(std::string& out, std::string_view& rest) {
  const char c = rest.front();
  if (static_cast<unsigned char>(c) >= 0x80)
    return append_spelt(out, rest);
  constexpr std::string_view names = "abfnrtv\\'\"\n";
  constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"";
  if (const std::size_t at = names.find(c); at != std::string_view::npos) {
    rest.remove_prefix(1);
    if (at < meanings.size())
      out += meanings[at];
    return;
  }
  if (is_octal(c)) {
    char32_t code = 0;
    for (int digits = 0; digits < 3 && !rest.empty() && is_octal(rest.front()); ++digits) {
      code = code * 8 + static_cast<char32_t>(rest.front() - '0');
      rest.remove_prefix(1);
    }
    return utf8::append_code_point(out, code);
  }
  if (c == 'N')
    raise("a string has a \\N escape, which is not supported");
  if (c == 'x' || c == 'u' || c == 'U') {
    rest.remove_prefix(1);
    return utf8::append_code_point(out, take_hex(rest, c == 'x' ? 2 : c == 'u' ? 4 : 8));
  }
  out += '\\';
}

} // namespace

std::string unescape(std::string_view inside) {
  std::string out;
  out.reserve(inside.size());
  while (!inside.empty()) {
    const char c = inside.front();
    inside.remove_prefix(1);
    if (c != '\\')
      out += c;
    else if (inside.empty())
      raise("a string ends in a backslash");
    else
      append_escape(out, inside);
  }
  return out;
}

} // namespace tokenrouter::jinja
