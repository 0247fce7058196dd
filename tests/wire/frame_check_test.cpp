#include <boost/test/unit_test.hpp>

#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/limits.hpp"
#include "runtime/wire/frame_check.hpp"

using namespace tokenrouter;

namespace {

std::vector<std::byte> payload_of(std::size_t n) {
  std::vector<std::byte> payload(n);
  for (std::size_t i = 0; i < n; ++i)
    payload[i] = static_cast<std::byte>(i * 37 + 11);
  return payload;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_frame_passes_its_own_check) {
  for (const std::size_t n : {0u, 1u, 7u, 8u, 100u, 100000u}) {
    const auto payload = payload_of(n);
    frame_header header;
    header.kind = frame_kind::heartbeat;
    header.source_rank = 3;
    header.sequence = 9;
    const auto made = make_frame(header, payload);
    BOOST_TEST(made.payload_bytes == n);
    BOOST_TEST((made.kind == frame_kind::heartbeat));
    BOOST_TEST(made.sequence == 9u);
    BOOST_TEST(check_frame(made, payload).has_value());
  }
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_of_a_payload_is_caught) {
  const auto payload = payload_of(97);
  const auto header = make_frame({}, payload);
  for (std::size_t bit = 0; bit < payload.size() * 8; ++bit) {
    auto flipped = payload;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    const auto checked = check_frame(header, flipped);
    BOOST_REQUIRE(!checked.has_value());
    BOOST_TEST((checked.error().code == errc::malformed));
  }
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_of_a_header_is_caught) {
  const auto payload = payload_of(20);
  const auto header = make_frame({}, payload);
  for (std::size_t bit = 0; bit < sizeof header * 8; ++bit) {
    auto flipped = header;
    std::as_writable_bytes(std::span(&flipped, 1))[bit / 8] ^=
        static_cast<std::byte>(1u << (bit % 8));
    const auto checked = check_frame(flipped, payload);
    BOOST_REQUIRE(!checked.has_value());
    BOOST_TEST((checked.error().code == errc::malformed)); // not taken for another version
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_extension_of_a_payload_is_caught) {
  const auto payload = payload_of(64);
  const auto header = make_frame({}, payload);
  for (std::size_t n = 0; n < payload.size(); ++n)
    BOOST_TEST(!check_frame(header, std::span(payload).first(n)).has_value());
  auto longer = payload;
  longer.push_back(std::byte{0});
  BOOST_TEST(!check_frame(header, longer).has_value());
}

BOOST_AUTO_TEST_CASE(a_wrong_header_is_refused_with_its_reason) {
  struct row {
    std::function<void(frame_header&)> spoil;
    errc code;
    const char* says;
  };
  const std::vector<row> rows{
      {[](auto& h) { h.magic ^= 1; }, errc::malformed, "magic"},
      {[](auto& h) { h.version += 1; }, errc::mismatch, "protocol version"},
      {[](auto& h) { h.kind = frame_kind{0}; }, errc::malformed, "unknown kind 0"},
      {[](auto& h) { h.kind = frame_kind{5}; }, errc::malformed, "unknown kind 5"},
      {[](auto& h) { h.reserved = 1; }, errc::malformed, "kind"},
      {[](auto& h) { h.payload_bytes += 1; }, errc::malformed, "announces"},
      {[](auto& h) { h.checksum ^= 0x80000000u; }, errc::malformed, "checksum"},
  };
  const auto payload = payload_of(20);
  for (const auto& [spoil, code, says] : rows) {
    frame_header header;
    header.source_rank = 42;
    spoil(header);
    const auto payload_fault = header.payload_bytes, checksum_fault = header.checksum;
    header = make_frame(header, payload);
    header.payload_bytes += payload_fault;
    header.checksum ^= checksum_fault;
    const auto checked = check_frame(header, payload);
    BOOST_REQUIRE(!checked.has_value());
    BOOST_TEST((checked.error().code == code));
    BOOST_TEST(checked.error().message.find(says) != std::string::npos);
    BOOST_TEST(checked.error().message.find("rank 42") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_frame_longer_than_any_may_be_is_refused) {
  const std::vector<std::byte> payload(limits::frame_bytes_max + 1);
  frame_header header;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  BOOST_TEST((check_frame(header, payload).error().code == errc::capacity));
}
