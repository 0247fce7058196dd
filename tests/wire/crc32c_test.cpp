#include <boost/test/unit_test.hpp>

#include <array>
#include <string_view>
#include <vector>

#include "runtime/core/philox.hpp"
#include "runtime/wire/crc32c.hpp"

using namespace tokenrouter;

namespace {

std::vector<std::byte> random_bytes(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i)
    bytes[i] = static_cast<std::byte>(256 * uniform_draw(1, 1, static_cast<std::uint32_t>(i)));
  return bytes;
}

} // namespace

// Known answers of CRC-32C: the check value of "123456789", and RFC 3720, appendix B.4.
BOOST_AUTO_TEST_CASE(the_checksum_is_crc32c) {
  const std::string_view digits = "123456789";
  const std::vector<std::byte> zeros(32, std::byte{0});
  const std::vector<std::byte> ones(32, std::byte{0xff});
  for (const auto crc : {crc32c, crc32c_portable}) {
    BOOST_TEST(crc(std::as_bytes(std::span(digits))) == 0xe3069283u);
    BOOST_TEST(crc(zeros) == 0x8a9136aau);
    BOOST_TEST(crc(ones) == 0x62a8ab43u);
    BOOST_TEST(crc({}) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(both_ways_to_compute_it_agree_at_every_length_and_alignment) {
  const auto bytes = random_bytes(300);
  for (std::size_t first = 0; first < 9; ++first)
    for (std::size_t n = 0; n + first <= bytes.size(); ++n) {
      const auto part = std::span(bytes).subspan(first, n);
      BOOST_REQUIRE(crc32c(part) == crc32c_portable(part));
    }
}
