#include "runtime/text/normalize.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <utf8proc.h>

#include "runtime/core/check.hpp"
#include "runtime/text/utf8.hpp"

namespace tokenrouter {

namespace {

int combining_class(utf8proc_int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

/// Canonical decomposition, combining marks in canonical order.
std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  while (!text.empty()) {
    const char32_t code_point = utf8::front_code_point(text);
    text.remove_prefix(utf8::front_unit(text).bytes);
    std::array<utf8proc_int32_t, 32> parts{};
    int boundary = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts.data(),
                                parts.size(), UTF8PROC_DECOMPOSE, &boundary);
    check(count > 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()),
          "a code point decomposes into a few");
    out.insert(out.end(), parts.begin(), parts.begin() + count);
  }
  // utf8proc would order marks by exchanging neighbours, which is quadratic in a long run.
  for (auto at = out.begin(); at != out.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, out.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(at, end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
  return out;
}

} // namespace

std::string to_nfc(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(text, is_ascii))
    return std::string(text);
  auto code_points = decompose(text);
  const auto count = utf8proc_normalize_utf32(
      code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()),
      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  check(count >= 0, "valid code points compose");
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    utf8::append_code_point(out, static_cast<char32_t>(code_points[static_cast<std::size_t>(i)]));
  return out;
}

bool is_space(char32_t code_point) {
  if (code_point < 0x80)
    return code_point == ' ' || (code_point >= '\t' && code_point <= '\r');
  if (code_point == 0x85)
    return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

} // namespace tokenrouter
