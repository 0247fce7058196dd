#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>
#include <regex>

#include <nlohmann/json.hpp>

#include "tests/ingress/ingress_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;
using json = nlohmann::ordered_json;

namespace {

const std::string folder = "tests/data/jinja/";

std::string text_of(const std::string& file) {
  std::ifstream stream(folder + file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

call_tools tools_with(const std::string& template_source) {
  call_tools tools = tools_for_tests();
  tools.form = chat_template::parse(template_source, "T");
  return tools;
}

/// Its date is the day's: a golden's is that of its making.
std::string without_date(const std::string& text) {
  return std::regex_replace(text, std::regex("Today: [^\n]*"), "Today: ");
}

const char* const with_tools = R"({"messages": [{"role": "user", "content": "a"}], "tools":
    [{"type": "function", "function": {"name": "f"}}]})";

} // namespace

BOOST_AUTO_TEST_CASE(chats_with_tools_become_the_prompts_that_transformers_makes_of_them) {
  const json all = json::parse(text_of("bodies.json"));
  int equal = 0;
  for (const auto& one : all["cases"]) {
    // A template without special tokens of its own gets them written in.
    std::string source;
    for (const auto& [name, token] : all["special_tokens"].items())
      source += "{% set " + name + " = '" + token.get<std::string>() + "' %}";
    const auto tools =
        tools_with(source + text_of("templates/" + one["template"].get<std::string>()));
    const json& body = all["bodies"][one["body"].get<std::size_t>()];
    const auto call = parse_chat(body.dump(), tools);
    BOOST_TEST_CONTEXT(one["template"] << " " << body.dump()) {
      BOOST_REQUIRE_MESSAGE(call, (call ? "" : call.error().message));
      BOOST_TEST(without_date(tools.words->decode(call->prompts[0])) ==
                 without_date(one["want"].get<std::string>()));
      const bool shown = body.contains("tools") && body.value("tool_choice", "auto") != "none";
      BOOST_TEST((call->calls != tool_call_form::none) == shown);
    }
    ++equal;
  }
  BOOST_TEST(equal == 24);
}

BOOST_AUTO_TEST_CASE(each_familys_template_says_how_its_model_writes_calls) {
  const std::pair<const char*, tool_call_form> rows[] = {
      {"chatml.jinja", tool_call_form::none},
      {"gemma3_style.jinja", tool_call_form::none},
      {"llama3_style.jinja", tool_call_form::none},
      {"qwen2_5_style.jinja", tool_call_form::tagged},
      {"qwen3_style.jinja", tool_call_form::tagged},
      {"llama3_1_style.jinja", tool_call_form::bare_json},
      {"macros_style.jinja", tool_call_form::unknown}};
  for (const auto& [file, form] : rows)
    BOOST_TEST((tools_with(text_of(std::string("templates/") + file)).form->tool_calls() == form),
               file);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_tools_is_named) {
  const auto qwen = tools_with(text_of("templates/qwen3_style.jinja"));
  const std::string tool = R"({"type": "function", "function": {"name": "f"}})";
  for (const auto& [more, param] : std::vector<std::pair<std::string, std::string>>{
           {R"("tools": {})", "tools"},
           {R"("tools": [{}])", "tools[0]"},
           {R"("tools": [{"type": "function", "function": {"name": ""}}])",
            "tools[0].function.name"},
           {R"("tools": [{"type": "function", "function": {"name": "f", "strict": true}}])",
            "tools[0].function.strict"},
           {R"("tools": [{"type": "function", "function": {"name": "f", "parameters": 1}}])",
            "tools[0].function.parameters"},
           {R"("tools": [)" + tool + R"(], "tool_choice": "required")", "tool_choice"},
           {R"("tools": [)" + tool + R"(], "tool_choice": {"type": "function"})", "tool_choice"},
           {R"("tools": [)" + tool + R"(], "parallel_tool_calls": false)", "parallel_tool_calls"},
           {R"("tool_choice": "auto")", "tool_choice"},
           {R"("functions": [])", "functions"}}) {
    const std::string body = R"({"messages": [{"role": "user", "content": "a"}], )" + more + "}";
    const auto call = parse_chat(body, qwen);
    BOOST_REQUIRE_MESSAGE(!call, body);
    BOOST_TEST(call.error().param == param, body);
  }
  for (const auto& [call, param] : std::vector<std::pair<std::string, std::string>>{
           {"7", "messages[0].tool_calls[0]"},
           {R"({"id": "x"})", "messages[0].tool_calls[0].function"},
           {R"({"function": {"name": "f", "arguments": {}}})",
            "messages[0].tool_calls[0].function.arguments"},
           {R"({"function": {"name": "f", "arguments": "[1]"}})",
            "messages[0].tool_calls[0].function.arguments"},
           {R"({"function": {"arguments": "{}"}})", "messages[0].tool_calls[0].function.name"},
           {R"({"type": "other", "function": {"name": "f", "arguments": "{}"}})",
            "messages[0].tool_calls[0].type"}}) {
    const auto parsed = parse_chat(
        R"({"messages": [{"role": "assistant", "content": null, "tool_calls": [)" + call + "]}]}",
        qwen);
    BOOST_REQUIRE_MESSAGE(!parsed, call);
    BOOST_TEST(parsed.error().param == param, call);
  }
}

BOOST_AUTO_TEST_CASE(a_template_that_shows_no_tools_refuses_them) {
  for (const char* file : {"chatml.jinja", "macros_style.jinja"}) {
    const auto call = parse_chat(with_tools, tools_with(text_of(std::string("templates/") + file)));
    BOOST_REQUIRE(!call);
    BOOST_TEST(call.error().status == 400u);
    BOOST_TEST(call.error().param == "tools");
  }
  const auto call = parse_chat(R"({"messages": [{"role": "tool", "content": "a"}]})",
                               tools_with(text_of("templates/chatml.jinja")));
  BOOST_REQUIRE(!call);
  BOOST_TEST(call.error().param == "messages");
}

BOOST_AUTO_TEST_CASE(an_object_of_too_many_members_is_refused) {
  std::string body = R"({"messages": [{"role": "user", "content": "a"}])";
  for (int i = 0; i < 600; ++i)
    body += ", \"a" + std::to_string(i) + "\": 1";
  const auto call = parse_chat(body + "}", tools_for_tests());
  BOOST_REQUIRE(!call);
  BOOST_TEST((call.error().message.find("512 members") != std::string::npos));
}
