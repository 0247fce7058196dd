#include <boost/test/unit_test.hpp>

#include "runtime/ingress/tool_call_scanner.hpp"

using namespace tokenrouter;

namespace {

std::string written(const tool_scan& x) {
  std::string out = x.content;
  for (const auto& call : x.calls)
    out += "[" + call.name + call.arguments + "]";
  return out;
}

/// Text first, then calls, of a whole answer that came in pieces of so many bytes.
std::string scanned(tool_call_form form, const std::string& answer, std::size_t piece_bytes) {
  tool_call_scanner scanner(form, {"f", "g"});
  tool_scan all;
  const auto add = [&](tool_scan&& x) {
    all.content += x.content;
    all.calls.insert(all.calls.end(), x.calls.begin(), x.calls.end());
  };
  for (std::size_t at = 0; at < answer.size(); at += piece_bytes)
    add(scanner.push(std::string_view(answer).substr(at, piece_bytes)));
  add(scanner.finish());
  return written(all);
}

struct row {
  std::string answer, want;
};

void check_rows(tool_call_form form, const std::vector<row>& rows) {
  for (const auto& x : rows)
    for (const std::size_t piece_bytes : {1, 2, 3, 7, 1000})
      BOOST_TEST(scanned(form, x.answer, piece_bytes) == x.want, x.answer << " by " << piece_bytes);
}

const std::string call_f = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"z\": 1, \"a\": []}}\n"
                           "</tool_call>";

} // namespace

BOOST_AUTO_TEST_CASE(tagged_calls_are_told_from_text_however_it_is_cut) {
  const std::string f = R"([f{"z":1,"a":[]}])";
  check_rows(tool_call_form::tagged,
             {{call_f, f},
              {"a <b> c\n" + call_f, "a <b> c\n" + f},
              {call_f + "\n" + call_f + "\n", f + f},
              {call_f + "\n then", "\n then" + f},
              {"  \n", "  \n"},
              {"<tool_call>{\"name\": \"other\", \"arguments\": {}}", "[other{}]"}, // not closed
              {"<tool_call>{\"name\": \"f\", \"arguments\": {",
               "<tool_call>{\"name\": \"f\", \"arguments\": {"},
              {"<tool_call>\nno\n</tool_call>!", "<tool_call>\nno\n</tool_call>!"},
              {call_f + "\n<tool_call>[]</tool_call>", "\n<tool_call>[]</tool_call>" + f},
              {"<tool_call>{\"name\": 1, \"arguments\": {}}</tool_call>",
               "<tool_call>{\"name\": 1, \"arguments\": {}}</tool_call>"},
              {"<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>",
               "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>"},
              {"<tool", "<tool"},
              {R"({"name": "f", "parameters": {}})", R"({"name": "f", "parameters": {}})"}});
}

BOOST_AUTO_TEST_CASE(bare_calls_are_the_whole_answer_and_of_known_tools) {
  check_rows(tool_call_form::bare_json,
             {{R"({"name": "f", "parameters": {"s": "}\"{"}})", R"([f{"s":"}\"{"}])"},
              {"\n"
               R"({"type": "function", "name": "f", "parameters": {}})"
               "\n",
               "[f{}]"},
              {R"({"name": "f", "parameters": {}}; {"name": "g", "parameters": {"b": 2, "a": 1}})",
               R"([f{}][g{"b":2,"a":1}])"},
              {R"({"name": "h", "parameters": {}})", R"({"name": "h", "parameters": {}})"},
              {R"({"name": "f", "arguments": {}})", R"({"name": "f", "arguments": {}})"},
              {R"({"name": "f", "parameters": {)", R"({"name": "f", "parameters": {)"},
              {R"(So: {"name": "f", "parameters": {}})", R"(So: {"name": "f", "parameters": {}})"},
              {R"({"name": "f", "parameters": {}} there)", R"( there[f{}])"},
              {"{}", "{}"},
              {"", ""}});
}

BOOST_AUTO_TEST_CASE(text_is_not_held_back_longer_than_it_may_become_a_call) {
  tool_call_scanner tagged(tool_call_form::tagged, {"f"});
  BOOST_TEST(tagged.push("a <").content == "a ");
  BOOST_TEST(tagged.push("b").content == "<b");
  BOOST_TEST(written(tagged.push(call_f.substr(0, call_f.size() - 1))).empty());
  BOOST_TEST(tagged.push(">").calls.size() == 1u);
  tool_call_scanner bare(tool_call_form::bare_json, {"f"});
  BOOST_TEST(written(bare.push(" ")).empty());
  BOOST_TEST(bare.push("x").content == " x");
  BOOST_TEST(bare.push("{").content == "{");
}
