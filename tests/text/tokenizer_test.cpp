#include <boost/test/unit_test.hpp>

#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/text/tokenizer.hpp"
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

std::vector<token_id> encode(const std::string& text) {
  auto ids = abacus().encode(text);
  BOOST_REQUIRE(ids);
  return std::move(*ids);
}

nlohmann::json oracle(const std::string& name) {
  std::ifstream stream("tests/data/oracle/" + name);
  return nlohmann::json::parse(stream);
}

} // namespace

BOOST_AUTO_TEST_CASE(ids_equal_the_recorded_vectors) {
  const auto vectors = oracle("tokenizer.json");
  BOOST_TEST(vectors.size() == 22u);
  for (const auto& vector : vectors) {
    const std::string text = vector["text"];
    BOOST_TEST_INFO(text);
    const auto ids = encode(text);
    BOOST_TEST(ids == vector["ids"].get<std::vector<token_id>>(), tt::per_element());
    BOOST_TEST(abacus().decode(ids) == vector["decoded"].get<std::string>());
  }
}

BOOST_AUTO_TEST_CASE(ids_equal_the_recorded_prompts) {
  const auto prompts = oracle("prompts.json")["prompts"];
  BOOST_TEST(prompts.size() == 32u);
  for (const auto& prompt : prompts)
    BOOST_TEST(encode(prompt["prompt"]) == prompt["prompt_ids"].get<std::vector<token_id>>(),
               tt::per_element());
}

BOOST_AUTO_TEST_CASE(recorded_outputs_decode_to_their_texts) {
  for (const char* name : {"greedy-abacus-xs.json", "greedy-abacus-m.json"}) {
    const auto items = oracle(name)["items"];
    BOOST_TEST(items.size() == 32u);
    for (const auto& item : items) {
      const auto ids = item["output_ids"].get<std::vector<token_id>>();
      BOOST_TEST(abacus().decode(ids) == item["text"].get<std::string>());
    }
  }
}

BOOST_AUTO_TEST_CASE(the_vocabulary_can_be_looked_up) {
  BOOST_TEST(abacus().vocab_tokens() == 1024u);
  BOOST_TEST(abacus().token_bytes(1021) == "<|im_end|>");
  BOOST_TEST(abacus().token_bytes(1024) == "");
  BOOST_TEST(abacus().token_bytes(-1) == "");
  BOOST_TEST(abacus().token_bytes(220) == " ");
  BOOST_TEST(abacus().added_token_id("<think>").value() == 1022);
  BOOST_TEST(!abacus().added_token_id("the"));
  BOOST_TEST(abacus().is_special(1020));
  BOOST_TEST(!abacus().is_special(1022));
  BOOST_TEST(!abacus().is_special(-5));
  BOOST_TEST(!abacus().is_special(9999));
  const std::vector<token_id> ids{1020, 300, 1022, 18, 1023, 1021, 5000, -1};
  BOOST_TEST(abacus().decode(ids) == "<|im_start|>user<think>3</think><|im_end|>");
  BOOST_TEST(abacus().decode(ids, true) == "user<think>3</think>");
}

BOOST_AUTO_TEST_CASE(models_of_one_vocabulary_share_a_fingerprint) {
  const auto other = tokenizer::load("examples/models/abacus/abacus-m/tokenizer.json");
  BOOST_REQUIRE(other);
  BOOST_TEST(other->fingerprint() == abacus().fingerprint());
  BOOST_TEST(other->fingerprint() != 0u);
  BOOST_TEST(other->fingerprint_below(other->vocab_tokens()) == other->fingerprint());
  BOOST_TEST(other->fingerprint_below(1023) != other->fingerprint());
  BOOST_TEST(other->fingerprint_below(1023) == abacus().fingerprint_below(1023));
}

BOOST_AUTO_TEST_CASE(any_bytes_survive_a_round_trip_up_to_nfc) {
  std::mt19937 engine(2024);
  for (int round = 0; round < 3000; ++round) {
    std::string text(engine() % 60, ' ');
    for (char& c : text)
      c = static_cast<char>(engine());
    const auto ids = encode(text);
    BOOST_REQUIRE(abacus().decode(ids) == abacus().normalize(text));
    BOOST_REQUIRE(abacus().normalize(text).size() <= 3 * text.size());
    // Normal text and bytes that are not text come back as they were.
    const std::string normal = abacus().normalize(text);
    BOOST_REQUIRE(abacus().decode(encode(normal)) == normal);
  }
}

BOOST_AUTO_TEST_CASE(random_mixes_of_text_special_tokens_and_broken_bytes_round_trip) {
  const std::string parts[] = {"<|im_start|>", "<think>", "</think",    "\xF0\x9F\x98", "\xFF",
                               "1234",         " the",    "\u4F60",     "\r\n",         "   ",
                               "'ll",          "\u00E9",  "<|im_end|>", "\U0001F600",   "\x80",
                               "<|",           "\t",      "\0x"};
  std::mt19937 engine(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t n = engine() % 12; n > 0; --n)
      text += parts[engine() % std::size(parts)];
    BOOST_REQUIRE(abacus().decode(encode(text)) == text);
  }
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_text_become_their_own_tokens) {
  const auto ids = encode("a\xE4\xBD"
                          "b");
  BOOST_REQUIRE(ids.size() == 4u);
  BOOST_TEST(abacus().token_bytes(ids[1]) == "\xE4");
  BOOST_TEST(abacus().token_bytes(ids[2]) == "\xBD");
}

// Each takes well under a second; anything quadratic would take minutes.
BOOST_AUTO_TEST_CASE(long_inputs_of_any_kind_are_encoded) {
  const auto repeat = [](const std::string& piece, std::size_t bytes) {
    std::string out;
    while (out.size() < bytes)
      out += piece;
    return out;
  };
  for (const char* piece :
       {"a", " ", "\n", "the sum of 12 and 30 is 42. ", "<", "<|im_end|>", "<|im_en", "\xFF",
        "\xF0\x9F\x98", "\u4F60\u597D", "e\u0301", "\u0315\u0316", "1", " \n", "!", "a\r", "ab'"}) {
    const std::string text = repeat(piece, 300000);
    BOOST_TEST_INFO(piece);
    BOOST_TEST((abacus().decode(encode(text)) == abacus().normalize(text)));
  }
}
