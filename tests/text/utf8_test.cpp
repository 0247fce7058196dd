#include <boost/test/unit_test.hpp>

#include <random>
#include <string>

#include "runtime/text/byte_alphabet.hpp"
#include "runtime/text/normalize.hpp"
#include "runtime/text/utf8.hpp"

using namespace tokenrouter;
using namespace std::string_literals;

BOOST_AUTO_TEST_CASE(the_unit_at_the_front_follows_unicode_table_3_7) {
  struct row {
    std::string text;
    utf8::unit_kind kind;
    std::size_t bytes;
  };
  using enum utf8::unit_kind;
  const row rows[] = {
      {"a", character, 1},
      {"\0"s, character, 1},
      {"\x7F", character, 1},
      {"\xC2\x80", character, 2},
      {"\xDF\xBF", character, 2},
      {"\xE0\xA0\x80", character, 3},
      {"\xED\x9F\xBF", character, 3},
      {"\xEF\xBF\xBF", character, 3},
      {"\xF0\x90\x80\x80", character, 4},
      {"\xF4\x8F\xBF\xBF", character, 4},
      {"\x80", invalid, 1},
      {"\xC0\x80", invalid, 1},
      {"\xC1\xBF", invalid, 1},
      {"\xE0\x9F\xBF", invalid, 1},
      {"\xED\xA0\x80", invalid, 1},
      {"\xF0\x8F\xBF\xBF", invalid, 1},
      {"\xF4\x90\x80\x80", invalid, 1},
      {"\xF5\x80\x80\x80", invalid, 1},
      {"\xFF", invalid, 1},
      {"\xE2\x82"
       "A",
       invalid, 2},
      {"\xF0\x9F\x98"
       "A",
       invalid, 3},
      {"\xC3", incomplete, 1},
      {"\xE2\x82", incomplete, 2},
      {"\xF0\x9F\x98", incomplete, 3},
  };
  for (const row& r : rows) {
    const utf8::unit unit = utf8::front_unit(r.text);
    BOOST_TEST((unit.kind == r.kind));
    BOOST_TEST(unit.bytes == r.bytes);
  }
}

BOOST_AUTO_TEST_CASE(every_code_point_survives_encoding_and_decoding) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 37) {
    if (c >= 0xD800 && c <= 0xDFFF)
      continue;
    std::string text;
    utf8::append_code_point(text, c);
    BOOST_REQUIRE(utf8::is_valid(text));
    BOOST_REQUIRE(utf8::front_unit(text).bytes == text.size());
    BOOST_REQUIRE(utf8::front_code_point(text) == c);
  }
}

BOOST_AUTO_TEST_CASE(one_replacement_stands_for_each_maximal_subpart) {
  BOOST_TEST(utf8::replace_invalid("a\xF0\x9F\x98z\xFF\xC3") == "a\uFFFDz\uFFFD\uFFFD");
  BOOST_TEST(utf8::replace_invalid("\xE2\x82\xE2\x82\xAC") == "\uFFFD\u20AC");
  BOOST_TEST(utf8::replace_invalid("") == "");
}

BOOST_AUTO_TEST_CASE(nfc_composes_orders_and_leaves_the_rest) {
  const std::pair<const char*, const char*> rows[] = {
      {"plain", "plain"},
      {"e\u0301", "\u00E9"},
      {"a\u0301\u0316", "\u00E1\u0316"},
      {"a\u0316\u0301", "\u00E1\u0316"},
      {"\u1112\u1161\u11AB", "\uD55C"},
      {"\u212B", "\u00C5"},
      {"\u0344", "\u0308\u0301"},
      {"\u0958", "\u0915\u093C"},
      {"q\u0307\u0323", "q\u0323\u0307"},
      {"\U0001F469\u200D\U0001F52C", "\U0001F469\u200D\U0001F52C"},
  };
  for (const auto& [text, want] : rows)
    BOOST_TEST(to_nfc(text) == want);
}

// Ordering by exchanges would take about 10^9 steps here.
BOOST_AUTO_TEST_CASE(nfc_of_a_long_run_of_marks_takes_no_quadratic_time) {
  std::string text = "a", want = "a";
  for (int i = 0; i < 60000; ++i)
    text += i % 2 == 0 ? "\u0315" : "\u0316";
  for (int i = 0; i < 60000; ++i)
    want += i < 30000 ? "\u0316" : "\u0315";
  BOOST_TEST((to_nfc(text) == want));
}

BOOST_AUTO_TEST_CASE(the_byte_alphabet_is_a_bijection_with_its_known_letters) {
  std::string spelled;
  for (unsigned byte = 0; byte < 256; ++byte)
    utf8::append_code_point(spelled, to_byte_alphabet(static_cast<std::uint8_t>(byte)));
  const auto bytes = from_byte_alphabet(spelled);
  BOOST_REQUIRE(bytes);
  BOOST_REQUIRE(bytes->size() == 256u);
  for (unsigned byte = 0; byte < 256; ++byte)
    BOOST_TEST(static_cast<std::uint8_t>((*bytes)[byte]) == byte);
  BOOST_TEST(from_byte_alphabet("\u0120the\u010A").value() == " the\n");
  BOOST_TEST(!from_byte_alphabet("a b"));
  BOOST_TEST(!from_byte_alphabet("\u2581"));
  BOOST_TEST(!from_byte_alphabet("\xFF"));
}
