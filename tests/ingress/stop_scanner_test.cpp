#include <boost/test/unit_test.hpp>

#include "runtime/ingress/stop_scanner.hpp"

using tokenrouter::stop_scanner;

namespace {

struct shown {
  std::vector<std::string> pieces; ///< one for each piece that went in, and what the end gave
  bool stopped = false;
};

shown scan(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  stop_scanner scanner(stops);
  shown out;
  for (const auto& piece : pieces)
    out.pieces.push_back(scanner.push(piece));
  out.pieces.push_back(scanner.finish());
  out.stopped = scanner.stopped();
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(text_is_held_back_only_where_it_may_become_a_stop_string) {
  using list = std::vector<std::string>;
  struct row {
    const char* what;
    list stops, pieces, expected;
    bool stopped;
  };
  for (const row& x : {
           row{"no stop strings: all passes", {}, {"a", "b"}, {"a", "b", ""}, false},
           row{"within a piece", {"END"}, {"abENDcd", "e"}, {"ab", "", ""}, true},
           row{"across pieces", {"END"}, {"abE", "N", "Dx"}, {"ab", "", "", ""}, true},
           row{"a false start is shown later",
               {"END"},
               {"abE", "N", "x"},
               {"ab", "", "ENx", ""},
               false},
           row{"a start at the end of the text is shown", {"END"}, {"abEN"}, {"ab", "EN"}, false},
           row{"the first in the text wins, not the first in the list",
               {"late", "soon"},
               {"a soon late"},
               {"a ", ""},
               true},
           row{"a start within a false start", {"aab"}, {"aa", "ab", "z"}, {"", "a", "", ""}, true},
           row{"the longest start of any is held", {"xy", "yzzz"}, {"ayzz"}, {"a", "yzz"}, false},
           row{"one that is the start of another", {"ab", "abc"}, {"ab"}, {"", ""}, true},
       }) {
    const auto out = scan(x.stops, x.pieces);
    BOOST_TEST(out.pieces == x.expected, boost::test_tools::per_element());
    BOOST_TEST(out.stopped == x.stopped, x.what);
  }
}

BOOST_AUTO_TEST_CASE(however_a_text_is_cut_the_same_is_shown) {
  const std::string text = "aababcabcababcabdab";
  const std::vector<std::string> stops = {"abcabd", "cabdab"};
  const std::string expected = text.substr(0, text.find("abcabd"));
  for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); cuts += 7) {
    stop_scanner scanner(stops);
    std::string out, piece;
    for (std::size_t i = 0; i < text.size(); ++i) {
      piece += text[i];
      if ((cuts >> i & 1u) != 0)
        out += scanner.push(std::exchange(piece, {}));
    }
    out += scanner.push(piece);
    out += scanner.finish();
    BOOST_REQUIRE_EQUAL(out, expected);
    BOOST_REQUIRE(scanner.stopped());
  }
}
