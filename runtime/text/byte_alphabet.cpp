#include "runtime/text/byte_alphabet.hpp"

#include <array>

#include "runtime/text/utf8.hpp"

namespace tokenrouter {

namespace {

constexpr std::size_t first_extra = 0x100;
constexpr std::size_t alphabet_end = first_extra + 68;

struct tables {
  std::array<char32_t, 256> of_byte{};
  std::array<std::int16_t, alphabet_end> of_character{}; ///< -1: not of the alphabet

  constexpr tables() {
    of_character.fill(-1);
    std::size_t next = first_extra;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const std::size_t character = printable ? byte : next++;
      of_byte[byte] = static_cast<char32_t>(character);
      of_character[character] = static_cast<std::int16_t>(byte);
    }
  }
};

constexpr tables alphabet;

} // namespace

char32_t to_byte_alphabet(std::uint8_t byte) {
  return alphabet.of_byte[byte];
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const utf8::unit unit = utf8::front_unit(text);
    if (unit.kind != utf8::unit_kind::character)
      return std::nullopt;
    const char32_t character = utf8::front_code_point(text);
    if (character >= alphabet_end || alphabet.of_character[character] < 0)
      return std::nullopt;
    out += static_cast<char>(alphabet.of_character[character]);
    text.remove_prefix(unit.bytes);
  }
  return out;
}

} // namespace tokenrouter
