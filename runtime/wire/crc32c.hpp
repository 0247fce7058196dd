#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tokenrouter {

/// CRC-32C (Castagnoli: reflected polynomial 0x82f63b78, initial value and final xor all ones); 0
/// for no bytes. By the CPU's instruction where it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes);

/// The same, always by table.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes);

} // namespace tokenrouter
