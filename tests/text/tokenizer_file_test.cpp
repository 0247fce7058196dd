#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/text/byte_alphabet.hpp"
#include "runtime/text/tokenizer.hpp"
#include "runtime/text/utf8.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace tokenrouter;
using json = nlohmann::json;
namespace fs = std::filesystem;
namespace tt = boost::test_tools;

namespace {

/// 256 byte tokens in the order of the bytes, "ab" = 256, "abc" = 257 (no merge), <s> = 258.
json small_tokenizer() {
  json vocab;
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelling;
    utf8::append_code_point(spelling, to_byte_alphabet(static_cast<std::uint8_t>(byte)));
    vocab[spelling] = byte;
  }
  vocab["ab"] = 256;
  vocab["abc"] = 257;
  return {
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"added_tokens", {{{"id", 258}, {"content", "<s>"}, {"special", true}}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b"}}}}};
}

struct file {
  test::scratch_folder folder;
  fs::path path = folder.path() / "tokenizer.json";

  result<tokenizer> load(const json& content) const {
    std::ofstream(path) << content.dump();
    return tokenizer::load(path);
  }
  std::vector<token_id> encode(const json& content, const std::string& text) const {
    auto loaded = load(content);
    BOOST_REQUIRE_MESSAGE(loaded.has_value(), (loaded ? std::string() : loaded.error().message));
    return loaded->encode(text).value();
  }
};

struct spoiling {
  std::function<void(json&)> spoil;
  const char* expected; // code, then what follows the path
};

const spoiling spoilings[] = {
    {[](json& t) { t = json::array(); }, "malformed: is not a JSON object"},
    {[](json& t) { t["model"]["type"] = "Unigram"; }, "mismatch: model type 'Unigram'*"},
    {[](json& t) { t["model"]["dropout"] = 0.1; }, "mismatch: model.dropout*"},
    {[](json& t) { t["model"]["byte_fallback"] = true; }, "mismatch: model.byte_fallback*"},
    {[](json& t) { t["model"]["end_of_word_suffix"] = "</w>"; },
     "mismatch: model.end_of_word_suffix*"},
    {[](json& t) { t["model"]["vocab"] = 5; },
     "malformed: model.vocab must be an object of token: id"},
    {[](json& t) { t["model"]["vocab"]["q"] = "1"; },
     "malformed: model.vocab: the id of 'q' is not an integer"},
    {[](json& t) { t["model"]["vocab"]["abc"] = -4; },
     "malformed: token 'abc' has id -4, wanted 0 to 16777215"},
    {[](json& t) { t["model"]["vocab"]["abc"] = 256; },
     "malformed: id 256 belongs to two tokens, one of them 'abc'"},
    {[](json& t) { t["model"]["vocab"].erase("q"); },
     "mismatch: a vocabulary without a token for byte 113 ('q')*"},
    {[](json& t) { t["model"]["merges"] = "a b"; }, "malformed: model.merges must be an array"},
    {[](json& t) { t["model"]["merges"] = {"ab"}; },
     "malformed: model.merges[0] must be two tokens with one space between them"},
    {[](json& t) { t["model"]["merges"] = {7}; },
     "malformed: model.merges[0] must be \"a b\" or [\"a\", \"b\"]"},
    {[](json& t) {
       t["model"]["merges"] = {"a b", "b c"};
     },
     "malformed: model.merges[1]: token 'bc' is not in the vocabulary"},
    {[](json& t) { t["model"]["merges"] = {"ax c"}; },
     "malformed: model.merges[0]: token 'ax' is not in the vocabulary"},
    {[](json& t) {
       t["normalizer"] = {{"type", "NFKC"}};
     },
     "mismatch: normalizer 'NFKC'*"},
    {[](json& t) {
       t["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}};
     },
     "mismatch: normalizer 'Lowercase'*"},
    {[](json& t) { t["pre_tokenizer"] = nullptr; }, "mismatch: pre_tokenizer ''*"},
    {[](json& t) { t["pre_tokenizer"]["type"] = "Metaspace"; },
     "mismatch: pre_tokenizer 'Metaspace'*"},
    {[](json& t) { t["pre_tokenizer"]["add_prefix_space"] = true; },
     "mismatch: pre_tokenizer ByteLevel with add_prefix_space*"},
    {[](json& t) {
       t["pre_tokenizer"] = {
           {"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Removed"}};
     },
     "mismatch: pre_tokenizer Split with behavior 'Removed'*"},
    {[](json& t) {
       t["pre_tokenizer"] = {
           {"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Isolated"}};
     },
     "mismatch: a pre_tokenizer without ByteLevel*"},
    {[](json& t) {
       t["pre_tokenizer"] = {
           {"type", "Split"}, {"pattern", {{"Regex", "a("}}}, {"behavior", "Isolated"}};
     },
     "malformed: pre_tokenizer Split: pattern 'a(': missing closing parenthesis at byte 2"},
    {[](json& t) {
       t["decoder"] = {{"type", "WordPiece"}};
     },
     "mismatch: decoder 'WordPiece'*"},
    {[](json& t) {
       t["post_processor"] = {{"type", "BertProcessing"}};
     },
     "mismatch: post_processor 'BertProcessing'*"},
    {[](json& t) { t["added_tokens"][0]["single_word"] = true; },
     "mismatch: added_tokens[0] ('<s>'): single_word*"},
    {[](json& t) { t["added_tokens"][0]["content"] = ""; },
     "malformed: added_tokens[0] must have a non-empty content and an integer id"},
    {[](json& t) { t["added_tokens"][0]["id"] = 256; },
     "malformed: id 256 belongs to two tokens, one of them '<s>'"},
};

using ids = std::vector<token_id>;

} // namespace

BOOST_FIXTURE_TEST_SUITE(tokenizer_files, file)

BOOST_AUTO_TEST_CASE(both_spellings_of_merges_are_read) {
  json pairs = small_tokenizer();
  pairs["model"]["merges"] = json::array({json::array({"a", "b"})});
  BOOST_TEST(encode(small_tokenizer(), "abc") == (ids{256, 'c'}), tt::per_element());
  BOOST_TEST(encode(pairs, "abc") == (ids{256, 'c'}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(ignore_merges_is_honoured) {
  json content = small_tokenizer();
  content["model"]["ignore_merges"] = true;
  BOOST_TEST(encode(content, "abc") == (ids{257}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(the_byte_level_pattern_splits_words) {
  json content = small_tokenizer();
  BOOST_TEST(encode(content, "xab ab'll") == (ids{'x', 256, ' ', 256, '\'', 'l', 'l'}),
             tt::per_element());
  // A split between a and b keeps them from merging.
  content["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"String", "b"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  BOOST_TEST(encode(content, "ab") == (ids{'a', 'b'}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(the_longest_added_token_wins_and_takes_its_white_space) {
  json content = small_tokenizer();
  content["added_tokens"] = {
      {{"id", 258}, {"content", "<s>"}, {"special", true}},
      {{"id", 259}, {"content", "<s><s>"}, {"special", true}},
      {{"id", 260}, {"content", "[L]"}, {"special", true}, {"lstrip", true}},
      {{"id", 261}, {"content", "[R]"}, {"special", true}, {"rstrip", true}}};
  BOOST_TEST(encode(content, "<s><s><s>") == (ids{259, 258}), tt::per_element());
  BOOST_TEST(encode(content, "x \t\u00A0[L] y") == (ids{'x', 260, ' ', 'y'}), tt::per_element());
  BOOST_TEST(encode(content, "x [R] \n y") == (ids{'x', ' ', 261, 'y'}), tt::per_element());
  BOOST_TEST(encode(content, "[R]  [L]") == (ids{261, 260}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(a_normalized_added_token_is_matched_after_normalisation) {
  json content = small_tokenizer();
  content["normalizer"] = {{"type", "NFC"}};
  content["added_tokens"] = {{{"id", 258}, {"content", "caf\u00E9"}, {"normalized", true}},
                             {{"id", 259}, {"content", "na\u00EFf"}, {"normalized", false}}};
  BOOST_TEST(encode(content, "cafe\u0301") == (ids{258}), tt::per_element());
  BOOST_TEST(encode(content, "na\u00EFf") == (ids{259}), tt::per_element());
  BOOST_TEST(encode(content, "nai\u0308f").size() == 5u);
}

BOOST_AUTO_TEST_CASE(without_a_normalizer_text_stays_as_it_is) {
  const auto loaded = load(small_tokenizer());
  BOOST_REQUIRE(loaded);
  BOOST_TEST(loaded->decode(loaded->encode("e\u0301").value()) == "e\u0301");
}

BOOST_AUTO_TEST_CASE(the_fingerprint_sees_ids_and_bytes) {
  const auto plain = load(small_tokenizer())->fingerprint();
  json other = small_tokenizer();
  other["model"]["merges"] = json::array();
  BOOST_TEST(load(other)->fingerprint() == plain);
  other["added_tokens"][0]["content"] = "<t>";
  BOOST_TEST(load(other)->fingerprint() != plain);
  other = small_tokenizer();
  other["added_tokens"][0]["id"] = 259;
  BOOST_TEST(load(other)->fingerprint() != plain);
}

BOOST_AUTO_TEST_CASE(faults_are_refused_by_name) {
  const std::string tail = " is not supported; this reads byte-level BPE";
  for (const spoiling& r : spoilings) {
    json content = small_tokenizer();
    r.spoil(content);
    std::string want = r.expected;
    const std::size_t colon = want.find(": ") + 2;
    want.insert(colon, path.string() + ": ");
    if (want.ends_with('*'))
      want.replace(want.size() - 1, 1, tail);
    const auto loaded = load(content);
    BOOST_TEST((loaded ? "loaded"
                       : std::string(to_string(loaded.error().code)) + ": " +
                             loaded.error().message) == want);
  }
  std::ofstream(path) << "{\"model\": ";
  BOOST_TEST((tokenizer::load(path).error().code == errc::malformed));
  BOOST_TEST((tokenizer::load("tests/no/such/folder").error().code == errc::not_found));
}

BOOST_AUTO_TEST_SUITE_END()
