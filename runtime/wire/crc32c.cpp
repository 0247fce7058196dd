#include "runtime/wire/crc32c.hpp"

#include <cstring>

#include <boost/crc.hpp>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tokenrouter {

std::uint32_t crc32c_portable(std::span<const std::byte> bytes) {
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

#if defined(__x86_64__)

namespace {

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::span<const std::byte> bytes) {
  const auto* at = bytes.data();
  auto left = bytes.size();
  std::uint64_t crc = 0xffffffff;
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto tail = static_cast<std::uint32_t>(crc);
  for (; left > 0; ++at, --left)
    tail = _mm_crc32_u8(tail, static_cast<std::uint8_t>(*at));
  return ~tail;
}

const bool has_sse42 = __builtin_cpu_supports("sse4.2") != 0;

} // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  return has_sse42 ? crc32c_sse42(bytes) : crc32c_portable(bytes);
}

#else

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  return crc32c_portable(bytes);
}

#endif

} // namespace tokenrouter
