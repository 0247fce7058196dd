#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace tokenrouter;
namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

const std::string plain_chatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\\n' }}{% endif %}";

const std::string with_bos =
    "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}";

/// A model's folder of this test's own.
class model_folder {
 public:
  model_folder() { fs::create_directories(path() / "additional_chat_templates"); }

  void write(const char* name, const std::string& content) const {
    std::ofstream(path() / name) << content;
  }
  const fs::path& path() const { return folder_.path(); }
  std::string error() const {
    const auto loaded = chat_template::load(path());
    return loaded ? "loaded" : std::string(to_string(loaded.error().code));
  }

 private:
  test::scratch_folder folder_;
};

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
    BOOST_TEST(*chat->render(messages, {true, thinking}) == prompt["prompt"].get<std::string>());
  }
  BOOST_TEST(without_thinking > 0);
  BOOST_TEST(*chat->render({{"user", "Hi"}}, {false, false}) == "<|im_start|>user\nHi<|im_end|>\n");
}

BOOST_AUTO_TEST_CASE(templates_are_found_in_either_file) {
  const model_folder folder;
  BOOST_TEST(folder.error() == "not found");
  const std::pair<const char*, const char*> rows[] = {
      {"{", "malformed"},
      {R"({"chat_template": null})", "not found"},
      {R"({"chat_template": 5})", "malformed"},
      {R"({"chat_template": [{"name": "rag", "template": "x"}]})", "malformed"},
      {R"({"chat_template": [{"name": "default"}]})", "malformed"},
      {R"({"chat_template": "{% if x %}"})", "malformed"},
      {R"({"chat_template": "{{ x | shout }}"})", "malformed"},
      {R"({"chat_template": "{{ messages }}"})", "loaded"},
      {R"({"chat_template": [{"name": "default", "template": "x"}]})", "loaded"},
  };
  for (const auto& [config, want] : rows) {
    folder.write("tokenizer_config.json", config);
    BOOST_TEST(folder.error() == want, config);
  }
  folder.write("chat_template.jinja", plain_chatml);
  const auto chat = chat_template::load(folder.path());
  BOOST_REQUIRE(chat);
  BOOST_TEST(*chat->render({{"user", "Hi"}}, {true, true}) ==
             "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  BOOST_TEST(!chat->has_thinking());
  folder.write("chat_template.jinja", "a\n{% bad %}");
  BOOST_TEST(chat_template::load(folder.path()).error().message ==
             (folder.path() / "chat_template.jinja").string() +
                 ":2: the tag 'bad' is not known or not supported");
}

BOOST_AUTO_TEST_CASE(a_template_for_tools_is_used_when_there_are_tools) {
  const model_folder folder;
  const json tools = json::array({{{"name", "f"}}});
  const auto both = [&] {
    const auto chat = chat_template::load(folder.path());
    BOOST_REQUIRE(chat);
    const json messages = json::array({{{"role", "user"}, {"content", "x"}}});
    return *chat->render_json(messages, nullptr, nullptr, false) + "," +
           *chat->render_json(messages, tools, nullptr, false);
  };
  folder.write("tokenizer_config.json", R"({"chat_template": [
      {"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]})");
  BOOST_TEST(both() == "plain,tools");
  folder.write("chat_template.jinja", "file");
  BOOST_TEST(both() == "file,file");
  folder.write("additional_chat_templates/tool_use.jinja", "tool file");
  BOOST_TEST(both() == "file,tool file");
}

BOOST_AUTO_TEST_CASE(special_tokens_come_from_the_models_files) {
  const model_folder folder;
  folder.write("chat_template.jinja", with_bos + "{{ pad_token }}{{ additional_special_tokens }}");
  folder.write("tokenizer_config.json",
               R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": null})");
  folder.write("special_tokens_map.json", R"({"bos_token": "<other>", "eos_token": "</s>",
               "pad_token": {"content": "<pad>"}, "additional_special_tokens": ["<a>"]})");
  const auto chat = chat_template::load(folder.path());
  BOOST_REQUIRE(chat);
  BOOST_TEST(chat->bos_token() == "<s>");
  BOOST_TEST(*chat->render({{"user", "x"}}, {}) == "<s>user:x</s><pad>['<a>']");
  const json messages = json::array({{{"role", "user"}, {"content", "x"}}});
  BOOST_TEST(*chat->render_json(messages, nullptr, {{"bos_token", "B"}}, true) ==
             "Buser:x</s><pad>['<a>']");
  BOOST_TEST(chat_template::parse("x", "T")->bos_token() == "");
}

BOOST_AUTO_TEST_CASE(a_rendered_prompt_begins_with_one_begin_token) {
  const auto words = tokenizer::load("examples/models/abacus/abacus-xs");
  BOOST_REQUIRE(words);
  // abacus has no begin token of its own: one of its special tokens plays it.
  const token_id begin = words->added_token_id("<|im_end|>").value();
  const model_folder folder;
  folder.write("chat_template.jinja", with_bos);
  folder.write("tokenizer_config.json", R"({"bos_token": "<|im_end|>"})");
  const auto chat = chat_template::load(folder.path());
  const auto text = chat->render({{"user", "1+1"}}, {});
  BOOST_REQUIRE(text);
  BOOST_TEST(text->starts_with(chat->bos_token()));
  const auto ids = words->encode(*text);
  BOOST_REQUIRE(ids);
  BOOST_TEST(std::ranges::count(*ids, begin) == 1);
  BOOST_TEST(ids->front() == begin);
  BOOST_TEST(words->encode("1+1")->front() != begin);
}

BOOST_AUTO_TEST_CASE(messages_reach_the_template_as_transformers_hands_them_on) {
  const auto chat = chat_template::parse(
      "{% for m in messages %}{{ m | tojson }}{% endfor %}{{ tools }}{{ documents }}"
      "{{ add_generation_prompt }}{{ enable_thinking }}",
      "T");
  BOOST_REQUIRE(chat);
  const auto shown = [&](const char* message) {
    return *chat->render_json(json::array({json::parse(message)}), nullptr, nullptr, false);
  };
  BOOST_TEST(shown(R"({"role": "a", "content": null, "n": 1})") ==
             R"({"role": "a", "n": 1}NoneNoneFalse)");
  BOOST_TEST(shown(R"({"role": "a", "reasoning": "r", "thinking": null})") ==
             R"({"thinking": "r", "role": "a", "reasoning": "r", )"
             R"("reasoning_content": "r"}NoneNoneFalse)");
  BOOST_TEST(*chat->render({{"u", "c"}}, {true, true}) ==
             R"({"role": "u", "content": "c"}NoneNoneTrue)");
  BOOST_TEST(*chat->render({{"u", "c"}}, {true, false}) ==
             R"({"role": "u", "content": "c"}NoneNoneTrueFalse)");
}

BOOST_AUTO_TEST_CASE(what_is_no_conversation_is_refused) {
  const auto chat = chat_template::parse("{{ raise_exception('only users') }}", "T");
  BOOST_REQUIRE(chat);
  const json one = json::array({{{"role", "user"}}});
  const auto message = [&](const json& messages, const json& tools, const json& more) {
    const auto got = chat->render_json(messages, tools, more, true);
    return got ? *got : std::string(to_string(got.error().code)) + " " + got.error().message;
  };
  BOOST_TEST(message(one, nullptr, nullptr) == "invalid argument T:1: only users");
  for (const json& bad : {json::array(), json::object(), json(), json::array({"text"})})
    BOOST_TEST(message(bad, nullptr, nullptr).starts_with("invalid argument messages must be"));
  BOOST_TEST(message(one, "x", nullptr) == "invalid argument tools must be a list");
  BOOST_TEST(message(one, nullptr, {{"tools", 1}}) ==
             "invalid argument 'tools' can't be one of the template's further variables");
  BOOST_TEST(!chat->render({}, {}).has_value());
}
