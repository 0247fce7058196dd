#include <boost/test/unit_test.hpp>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "runtime/text/bpe.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

struct vocabulary {
  std::vector<std::string> bytes_of;
  std::map<std::string, token_id> ids;
  std::array<token_id, 256> byte_tokens{};
  std::vector<bpe_merge> merges;

  vocabulary() {
    for (int byte = 0; byte < 256; ++byte)
      byte_tokens[static_cast<std::size_t>(byte)] = add(std::string(1, static_cast<char>(byte)));
  }
  token_id add(const std::string& bytes) {
    ids[bytes] = static_cast<token_id>(bytes_of.size());
    bytes_of.push_back(bytes);
    return ids[bytes];
  }
  void merge(const std::string& left, const std::string& right) {
    const token_id merged = ids.contains(left + right) ? ids[left + right] : add(left + right);
    merges.push_back({ids[left], ids[right], merged});
  }
  std::vector<std::string> encode(const std::string& word, bool ignore_merges = false) const {
    bpe encoder(bytes_of, byte_tokens, merges, ignore_merges);
    std::vector<token_id> out, again;
    encoder.encode(word, out);
    encoder.encode(word, again); // from the cache
    BOOST_TEST(out == again, tt::per_element());
    std::vector<std::string> pieces;
    for (const token_id id : out)
      pieces.push_back(bytes_of[static_cast<std::size_t>(id)]);
    return pieces;
  }
  /// The definition: merge the leftmost pair of the smallest rank until there is none.
  std::vector<std::string> encode_slowly(const std::string& word) const {
    std::vector<token_id> now;
    for (const char c : word)
      now.push_back(byte_tokens[static_cast<std::uint8_t>(c)]);
    for (;;) {
      std::size_t best_rank = merges.size(), best_at = 0;
      for (std::size_t i = 0; i + 1 < now.size(); ++i)
        for (std::size_t rank = 0; rank < best_rank; ++rank)
          if (merges[rank].left == now[i] && merges[rank].right == now[i + 1]) {
            best_rank = rank;
            best_at = i;
          }
      if (best_rank == merges.size())
        break;
      now[best_at] = merges[best_rank].merged;
      now.erase(now.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
    }
    std::vector<std::string> pieces;
    for (const token_id id : now)
      pieces.push_back(bytes_of[static_cast<std::size_t>(id)]);
    return pieces;
  }
};

using pieces = std::vector<std::string>;

} // namespace

BOOST_AUTO_TEST_CASE(merges_apply_by_rank_and_leftmost_first) {
  vocabulary v;
  v.merge("b", "c");
  v.merge("a", "b");
  v.merge("a", "bc");
  v.merge("x", "x");
  BOOST_TEST(v.encode("abc") == (pieces{"abc"}), tt::per_element());
  BOOST_TEST(v.encode("ab") == (pieces{"ab"}), tt::per_element());
  BOOST_TEST(v.encode("xxx") == (pieces{"xx", "x"}), tt::per_element());
  BOOST_TEST(v.encode("xxxxx") == (pieces{"xx", "xx", "x"}), tt::per_element());
  BOOST_TEST(v.encode("") == pieces{}, tt::per_element());
  BOOST_TEST(v.encode("q") == (pieces{"q"}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(the_fast_merge_equals_the_definition_on_random_rules) {
  std::mt19937 engine(11);
  for (int round = 0; round < 60; ++round) {
    vocabulary v;
    std::vector<std::string> known{"a", "b", "c"};
    for (int m = 0; m < 25; ++m) {
      const std::string left = known[engine() % known.size()],
                        right = known[engine() % known.size()];
      if (left.size() + right.size() > 9)
        continue;
      v.merge(left, right);
      known.push_back(left + right);
    }
    for (int w = 0; w < 20; ++w) {
      std::string word(1 + engine() % 40, 'a');
      for (char& c : word)
        c = static_cast<char>('a' + engine() % 3);
      BOOST_TEST_INFO("round " << round << " word " << word);
      BOOST_TEST(v.encode(word) == v.encode_slowly(word), tt::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(ignore_merges_takes_a_word_that_is_a_token_whole) {
  vocabulary v;
  v.merge("a", "b");
  v.add("abc"); // no merge leads there
  BOOST_TEST(v.encode("abc") == (pieces{"ab", "c"}), tt::per_element());
  BOOST_TEST(v.encode("abc", true) == (pieces{"abc"}), tt::per_element());
  BOOST_TEST(v.encode("abcab", true) == (pieces{"ab", "c", "ab"}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(a_word_of_a_million_bytes_is_merged) {
  vocabulary v;
  v.merge("a", "a");
  v.merge("aa", "aa");
  BOOST_TEST(v.encode(std::string(1000000, 'a')).size() == 250000u);
}
