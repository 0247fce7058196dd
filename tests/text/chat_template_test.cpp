#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/text/chat_template.hpp"

using namespace tokenrouter;
namespace fs = std::filesystem;

namespace {

const std::string plain_chatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\\n' }}{% endif %}";

std::string verdict(const std::string& source) {
  const auto parsed = chat_template::parse(source, "F");
  return !parsed ? "refused" : parsed->has_thinking() ? "thinking" : "plain";
}

} // namespace

BOOST_AUTO_TEST_CASE(rendered_conversations_equal_the_recorded_prompts) {
  const auto chat = chat_template::load("examples/models/abacus/abacus-xs");
  BOOST_REQUIRE(chat);
  BOOST_TEST(chat->has_thinking());
  std::ifstream stream("tests/data/oracle/prompts.json");
  const auto prompts = nlohmann::json::parse(stream)["prompts"];
  int without_thinking = 0;
  for (const auto& prompt : prompts) {
    std::vector<chat_message> messages;
    for (const auto& message : prompt["messages"])
      messages.push_back({message["role"], message["content"]});
    const bool thinking = prompt["enable_thinking"];
    without_thinking += !thinking;
    BOOST_TEST(chat->render(messages, {true, thinking}) == prompt["prompt"].get<std::string>());
  }
  BOOST_TEST(without_thinking > 0);
  BOOST_TEST(chat->render({{"user", "Hi"}}, {false, false}) == "<|im_start|>user\nHi<|im_end|>\n");
}

BOOST_AUTO_TEST_CASE(chatml_is_recognised_whatever_its_layout) {
  const std::pair<std::string, const char*> rows[] = {
      {plain_chatml, "plain"},
      {"{%- for message in messages -%}\n  {{- \"<|im_start|>\" + message[\"role\"] + \"\\n\" + "
       "message[\"content\"] + \"<|im_end|>\" + \"\\n\" -}}\n{%- endfor -%}\n{%- if "
       "add_generation_prompt -%} {{- \"<|im_start|>assistant\\n\" -}} {%- endif -%}\n",
       "plain"},
      {"{% for message in messages %}\n{{'<|im_start|>' + message['role'] + '\\n' + "
       "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}\n{% if add_generation_prompt %}\n"
       "{{ '<|im_start|>assistant\\n' }}{% endif %}",
       "plain"},
      {"", "refused"},
      {"{{ bos_token }}" + plain_chatml, "refused"},
      {"Be brief. " + plain_chatml, "refused"},
      {plain_chatml + "{{ x }}", "refused"},
      {plain_chatml.substr(0, plain_chatml.size() - 3), "refused"},
      {"{% for message in messages %} {{'<|im_start|>' + message['role'] + '\\n' + "
       "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
       "'<|im_start|>assistant\\n' }}{% endif %}",
       "refused"}, // the blank before {{ is text
  };
  for (const auto& [source, want] : rows)
    BOOST_TEST(verdict(source) == want, source);
  const auto plain = chat_template::parse(plain_chatml, "F");
  BOOST_TEST(plain->render({}, {true, false}) == "<|im_start|>assistant\n");
}

BOOST_AUTO_TEST_CASE(other_templates_are_refused_with_what_to_do) {
  const auto refused = chat_template::parse("{{ '[INST] ' + x }}", "some/chat_template.jinja");
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::mismatch));
  BOOST_TEST(refused.error().message ==
             "some/chat_template.jinja: this chat template is not supported, only plain ChatML is "
             "(it begins with '{{ '[INST] ' + x }}'); render conversations yourself and send the "
             "text as a prompt");
}

BOOST_AUTO_TEST_CASE(templates_are_found_in_either_file) {
  const fs::path folder = fs::temp_directory_path() / ("tr_chat_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  BOOST_TEST((chat_template::load(folder).error().code == errc::not_found));
  std::ofstream(folder / "tokenizer_config.json") << "{";
  BOOST_TEST((chat_template::load(folder).error().code == errc::malformed));
  std::ofstream(folder / "tokenizer_config.json") << R"({"chat_template": [{"name": "default"}]})";
  BOOST_TEST((chat_template::load(folder).error().code == errc::mismatch));
  std::ofstream(folder / "tokenizer_config.json") << R"({"chat_template": null})";
  BOOST_TEST((chat_template::load(folder).error().code == errc::not_found));
  std::ofstream(folder / "tokenizer_config.json")
      << nlohmann::json{{"chat_template", plain_chatml}}.dump();
  BOOST_TEST(chat_template::load(folder).has_value());
  std::ofstream(folder / "chat_template.jinja") << "{{ other }}";
  BOOST_TEST((chat_template::load(folder).error().code == errc::mismatch));
  fs::remove_all(folder);
}
