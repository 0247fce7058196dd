// A line of a prompts file: refused, or tokens to submit.
#include <string>

#include "launch/prompts.hpp"
#include "runtime/core/check.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/ingress/ingress_fixture.hpp"

using namespace tokenrouter;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const auto tools = test::tools_for_tests();
  const prompt_tools own{[&](std::string_view text) { return tools.words->encode(text); },
                         [&](const std::vector<chat_message>& messages, bool enable_thinking) {
                           return tools.render(messages, {.enable_thinking = enable_thinking});
                         }};
  std::string id = "1";
  const auto order =
      parse_prompt(std::string(reinterpret_cast<const char*>(data), bytes), {}, own, id);
  if (!order)
    check(!order.error().message.empty(), "a refusal has a reason");
  else
    for (const token_id token : order->prompt)
      check(token >= 0, "tokens are tokens");
  return 0;
}
