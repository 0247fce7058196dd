#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/meta/type_name.hpp>

#include "runtime/wire/codec.hpp"

using namespace tokenrouter;

namespace {

enum class colour : std::uint8_t { red = 1, blue = 2 };

struct inner {
  std::uint16_t a = 0;
  float score = 0;
  friend bool operator==(const inner&, const inner&) = default;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, inner& x) {
  return f(caf::meta::type_name("inner"), x.a, x.score);
}

struct sample {
  std::int8_t i8 = 0;
  std::uint64_t u64 = 0;
  std::int32_t i32 = 0;
  double d = 0;
  bool flag = false;
  colour hue = colour::red;
  std::string text;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> raw;
  std::vector<inner> rows;
  std::map<std::string, double> table;
  std::set<std::uint16_t> ids;
  std::optional<inner> maybe;
  std::array<std::int16_t, 3> three{};
  std::pair<bool, std::string> both;
  friend bool operator==(const sample&, const sample&) = default;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, sample& x) {
  return f(caf::meta::type_name("sample"), x.i8, x.u64, x.i32, x.d, x.flag, x.hue, x.text, x.tokens,
           x.raw, x.rows, x.table, x.ids, x.maybe, x.three, x.both);
}

struct floats {
  float f = 0;
  double d = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, floats& x) {
  return f(x.f, x.d);
}

sample full() {
  return {-3,
          0xfedcba9876543210u,
          -2000000000,
          0.1,
          true,
          colour::blue,
          std::string("a\0b", 3),
          {1, -2, 151935},
          {0, 255, 7},
          {{1, 0.5f}, {65535, -1.25f}},
          {{"", 1.0}, {"entropy", 0.2}},
          {9, 3},
          inner{4, 2.0f},
          {-1, 0, 1},
          {true, "end"}};
}

} // namespace

BOOST_AUTO_TEST_CASE(what_is_encoded_is_decoded_again) {
  for (const auto& value : {sample{}, full()}) {
    const auto back = decode<sample>(encode(value));
    BOOST_REQUIRE(back.has_value());
    BOOST_TEST((*back == value));
  }
}

BOOST_AUTO_TEST_CASE(floats_keep_every_bit) {
  for (const double d : {0.0, -0.0, std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(), std::nan("7"),
                         std::numeric_limits<double>::denorm_min(), 1.0 / 3}) {
    const floats value{static_cast<float>(d), d};
    const auto back = decode<floats>(encode(value));
    BOOST_REQUIRE(back.has_value());
    BOOST_TEST(std::memcmp(&back->d, &value.d, sizeof value.d) == 0);
    BOOST_TEST(std::memcmp(&back->f, &value.f, sizeof value.f) == 0);
  }
}

BOOST_AUTO_TEST_CASE(numbers_are_little_endian_and_lengths_are_32_bits) {
  inner value{0x0102, 1.0f};
  const auto bytes = encode(value);
  BOOST_TEST(bytes.size() == 6u);
  BOOST_TEST(static_cast<int>(bytes[0]) == 2);
  BOOST_TEST(static_cast<int>(bytes[1]) == 1);
  std::vector<std::int32_t> tokens(3);
  BOOST_TEST(encode(tokens).size() == 4u + 3u * 4u);
}

BOOST_AUTO_TEST_CASE(every_truncation_is_rejected) {
  const auto bytes = encode(full());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto back = decode<sample>(std::span(bytes).first(n));
    BOOST_REQUIRE(!back.has_value());
    BOOST_TEST((back.error().code == errc::malformed));
    BOOST_TEST(back.error().message.find("cut short") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(bytes_left_over_are_rejected) {
  auto bytes = encode(full());
  bytes.push_back(std::byte{0});
  const auto back = decode<sample>(bytes);
  BOOST_REQUIRE(!back.has_value());
  BOOST_TEST(back.error().message.find("1 bytes more") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(values_that_nobody_writes_are_refused) {
  const std::vector<std::byte> neither{std::byte{2}};
  BOOST_TEST((decode<bool>(neither).error().code == errc::malformed));
  BOOST_TEST((decode<std::optional<bool>>(neither).error().code == errc::malformed));
  // A set that has its only key twice.
  const auto twice = encode(std::vector<std::uint16_t>{7, 7});
  const auto back = decode<std::set<std::uint16_t>>(twice);
  BOOST_REQUIRE(!back.has_value());
  BOOST_TEST(back.error().message.find("impossible") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_length_beyond_the_bytes_present_is_rejected_before_it_allocates) {
  for (const std::uint32_t announced : {5u, 0x10000u, 0x7fffffffu, 0xffffffffu}) {
    std::vector<std::byte> bytes(8);
    std::memcpy(bytes.data(), &announced, sizeof announced);
    BOOST_TEST(!decode<std::vector<std::uint8_t>>(bytes).has_value());
    BOOST_TEST(!decode<std::string>(bytes).has_value());
    BOOST_TEST(!decode<std::vector<std::int32_t>>(bytes).has_value());
    BOOST_TEST(!decode<std::vector<std::string>>(bytes).has_value());
  }
}

// No checksum here: a flipped bit may give another value, but then one of the very same bytes, up
// to the order of keys.
BOOST_AUTO_TEST_CASE(a_flipped_bit_gives_an_error_or_another_value_of_the_same_length) {
  const auto bytes = encode(full());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    if (const auto back = decode<sample>(flipped); back.has_value())
      BOOST_TEST(encode(*back).size() == flipped.size());
  }
}
