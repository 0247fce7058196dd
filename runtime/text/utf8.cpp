#include "runtime/text/utf8.hpp"

#include "runtime/core/check.hpp"

namespace tokenrouter::utf8 {

namespace {

struct byte_range {
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
};

/// Length of the sequence that `lead` opens (0: none) and the range of its second byte.
std::size_t sequence_bytes(std::uint8_t lead, byte_range& second) {
  if (lead < 0x80)
    return 1;
  if (lead >= 0xC2 && lead <= 0xDF)
    return 2;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (lead == 0xE0)
      second.low = 0xA0;
    if (lead == 0xED)
      second.high = 0x9F;
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (lead == 0xF0)
      second.low = 0x90;
    if (lead == 0xF4)
      second.high = 0x8F;
    return 4;
  }
  return 0;
}

} // namespace

unit front_unit(std::string_view text) {
  check(!text.empty(), "a unit of non-empty text");
  byte_range range;
  const std::size_t length = sequence_bytes(static_cast<std::uint8_t>(text[0]), range);
  if (length == 0)
    return {unit_kind::invalid, 1};
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size())
      return {unit_kind::incomplete, i};
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if (byte < range.low || byte > range.high)
      return {unit_kind::invalid, i};
    range = {};
  }
  return {unit_kind::character, length};
}

std::size_t valid_prefix_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const unit u = front_unit(text.substr(at));
    if (u.kind != unit_kind::character)
      break;
    at += u.bytes;
  }
  return at;
}

bool is_valid(std::string_view text) {
  return valid_prefix_bytes(text) == text.size();
}

char32_t front_code_point(std::string_view text) {
  const unit u = front_unit(text);
  check(u.kind == unit_kind::character, "a code point of valid text");
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  if (u.bytes == 1)
    return byte(0);
  char32_t out = byte(0) & (0xFFu >> (u.bytes + 1));
  for (std::size_t i = 1; i < u.bytes; ++i)
    out = (out << 6) | (byte(i) & 0x3Fu);
  return out;
}

void append_code_point(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const unit u = front_unit(text);
    out += u.kind == unit_kind::character ? text.substr(0, u.bytes) : replacement;
    text.remove_prefix(u.bytes);
  }
  return out;
}

} // namespace tokenrouter::utf8
