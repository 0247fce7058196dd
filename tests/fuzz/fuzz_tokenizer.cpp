// A tokenizer.json: refused, or a tokenizer that gives texts back as they were.
#include <string>

#include "runtime/core/check.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace tokenrouter;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const test::memory_file file(data, bytes);
  const auto words = tokenizer::load(file.path());
  if (!words) {
    check(!words.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  const std::string own(reinterpret_cast<const char*>(data), std::min<std::size_t>(bytes, 64));
  for (const std::string& text : {std::string("Hello, 42 \xc3\xa9\xff <|im_end|>\n"), own}) {
    const auto ids = words->encode(text);
    if (!ids)
      continue;
    for (const token_id id : *ids)
      check(id >= 0 && static_cast<std::uint32_t>(id) < words->vocab_tokens(), "ids are known");
    (void)words->decode(*ids);
  }
  return 0;
}
