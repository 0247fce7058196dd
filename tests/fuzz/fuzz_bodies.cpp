// Bodies of every endpoint, through the whole service over a job that answers at once: whatever
// comes in, it is answered exactly once, and never with a 500.
#include <string>

#include "runtime/core/check.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/ingress/ingress_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

void run(const std::string& target, const std::string& body) {
  scripted_engine job;
  service endpoints(job, {tools_for_tests(), {}, std::size_t{1} << 20});
  const auto client = std::make_shared<recorded_exchange>();
  endpoints.handle({"POST", target, "", body}, client);
  for (std::size_t i = 0; i < job.orders.size(); ++i) {
    job.say(i, "ab\u00e9");
    client->run();
    job.finish(i, finish_reason::length);
    client->run();
  }
  check(client->replies + (client->ended ? 1 : 0) == 1, "a call is answered exactly once");
  check(client->whole.status < 500, "a body is no fault of ours");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string body(reinterpret_cast<const char*>(data), bytes);
  for (const char* target :
       {"/v1/completions", "/v1/chat/completions", "/generate", "/tokenize", "/detokenize"})
    run(target, body);
  return 0;
}
