// What another rank may send: a frame's header and payload. A sound payload is a message that is
// written as the same bytes again.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "actors/envelope.hpp"
#include "actors/link_state.hpp"
#include "runtime/wire/frame_check.hpp"
#include "tests/fuzz/fuzz_target.hpp"

using namespace tokenrouter;

namespace {

template <class Message>
void open_plain(std::span<const std::byte> bytes) {
  if (const auto x = decode<Message>(bytes))
    check(std::ranges::equal(encode(*x), bytes), "a message has one form");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t count) {
  frame_header header;
  if (count < sizeof header)
    return 0;
  std::memcpy(&header, data, sizeof header);
  const auto payload = std::as_bytes(std::span(data + sizeof header, count - sizeof header));
  (void)check_frame(header, payload);
  check(check_frame(make_frame({}, payload), payload).has_value(), "what is made is sound");
  (void)open_envelope(payload, [&](auto&& message) {
    check(std::ranges::equal(seal(message), payload), "a message has one form");
  });
  open_plain<hello>(payload);
  return 0;
}
