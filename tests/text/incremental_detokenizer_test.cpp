#include <boost/test/unit_test.hpp>

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/text/incremental_detokenizer.hpp"
#include "runtime/text/utf8.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

const tokenizer& abacus() {
  static const tokenizer loaded = [] {
    auto out = tokenizer::load("examples/models/abacus/abacus-xs");
    if (!out)
      throw std::runtime_error(out.error().message);
    return std::move(*out);
  }();
  return loaded;
}

/// The token of one byte.
token_id byte_token(unsigned char byte) {
  for (token_id id = 0; id < 1024; ++id)
    if (abacus().token_bytes(id) == std::string(1, static_cast<char>(byte)))
      return id;
  throw std::runtime_error("no byte token");
}

using pieces = std::vector<std::string>;

pieces push_bytes(const std::string& bytes) {
  incremental_detokenizer text(abacus());
  pieces out;
  for (const char byte : bytes)
    out.push_back(text.push(byte_token(static_cast<unsigned char>(byte))));
  out.push_back(text.finish());
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_character_comes_out_whole_with_its_last_byte) {
  BOOST_TEST(push_bytes("\u00E9") == (pieces{"", "\u00E9", ""}), tt::per_element());
  BOOST_TEST(push_bytes("\u4F60!") == (pieces{"", "", "\u4F60", "!", ""}), tt::per_element());
  BOOST_TEST(push_bytes("\U0001F600") == (pieces{"", "", "", "\U0001F600", ""}), tt::per_element());
  BOOST_TEST(push_bytes("\u0436\u0437") == (pieces{"", "\u0436", "", "\u0437", ""}),
             tt::per_element());
}

BOOST_AUTO_TEST_CASE(broken_bytes_are_replaced_as_soon_as_they_can_not_complete) {
  BOOST_TEST(push_bytes("\xF0\x9F"
                        "A") == (pieces{"", "",
                                        "\uFFFD"
                                        "A",
                                        ""}),
             tt::per_element());
  BOOST_TEST(push_bytes("\xFF") == (pieces{"\uFFFD", ""}), tt::per_element());
  BOOST_TEST(push_bytes("\xE2\x82") == (pieces{"", "", "\uFFFD"}), tt::per_element());
  BOOST_TEST(push_bytes("\xE2\xC3\xA9") == (pieces{"", "\uFFFD", "\u00E9", ""}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(the_stream_is_the_whole_text_however_it_is_cut) {
  std::mt19937 engine(99);
  const std::string parts[] = {"\U0001F600", "\xF0\x9F\x98", "a",    "\u4F60", "\xFF", "\xE2",
                               " the",       "\u0436",       "\x80", "1",      "\xC3"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t n = engine() % 10; n > 0; --n)
      text += parts[engine() % std::size(parts)];
    if (round % 2 == 0)
      text = abacus().normalize(text);
    std::vector<token_id> ids;
    if (round % 2 == 0)
      ids = abacus().encode(text).value();
    else
      for (const char byte : text)
        ids.push_back(byte_token(static_cast<unsigned char>(byte)));
    incremental_detokenizer stream(abacus());
    std::string all;
    for (const token_id id : ids) {
      const std::string piece = stream.push(id);
      BOOST_REQUIRE(utf8::is_valid(piece));
      all += piece;
    }
    all += stream.finish();
    BOOST_REQUIRE(all == utf8::replace_invalid(text));
  }
}

BOOST_AUTO_TEST_CASE(special_tokens_are_skipped_only_if_asked) {
  const std::vector<token_id> ids{1022, 18, 1021};
  incremental_detokenizer shown(abacus(), false), skipped(abacus());
  std::string a, b;
  for (const token_id id : ids) {
    a += shown.push(id);
    b += skipped.push(id);
  }
  BOOST_TEST(a == "<think>3<|im_end|>");
  BOOST_TEST(b == "<think>3");
}

BOOST_AUTO_TEST_CASE(it_can_be_used_again_after_the_end) {
  incremental_detokenizer stream(abacus());
  BOOST_TEST(stream.push(byte_token(0xE2)) == "");
  BOOST_TEST(stream.finish() == "\uFFFD");
  BOOST_TEST(stream.push(18) == "3");
  BOOST_TEST(stream.finish() == "");
}
