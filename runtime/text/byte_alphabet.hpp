#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokenrouter {

/// The alphabet of byte-level BPE: each byte is written as one printable character (printable
/// Latin-1 as itself, the 68 others as U+0100 … U+0143 in the order of their values).
char32_t to_byte_alphabet(std::uint8_t byte);

/// The bytes that `text` spells in that alphabet; none if a character is not of it.
std::optional<std::string> from_byte_alphabet(std::string_view text);

} // namespace tokenrouter
