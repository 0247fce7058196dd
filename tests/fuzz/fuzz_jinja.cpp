// A chat template and its work on a conversation: text or an error, in bounded time and memory.
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/core/check.hpp"
#include "runtime/text/chat_template.hpp"
#include "tests/fuzz/fuzz_target.hpp"

using namespace tokenrouter;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const auto messages = nlohmann::ordered_json::parse(
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"},
          {"role": "assistant", "content": null, "reasoning": "easy", "tool_calls":
           [{"type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": [1.5]}}}]},
          {"role": "tool", "content": "2"}, {"role": "user", "content": [{"type": "text",
           "text": "\u00e9\ud83d\ude00"}]}])");
  static const auto tools = nlohmann::ordered_json::parse(R"([{"type": "function"}])");
  const auto form = chat_template::parse({reinterpret_cast<const char*>(data), bytes}, "template");
  if (!form) {
    check(form.error().message.find("template") != std::string::npos, "a fault has a place");
    return 0;
  }
  std::tm now{};
  now.tm_mday = 1;
  (void)form->render_json(messages, tools, nullptr, true, &now);
  return 0;
}
