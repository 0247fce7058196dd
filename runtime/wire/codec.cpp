#include "runtime/wire/codec.hpp"

#include <string>

#include <caf/sec.hpp>

namespace tokenrouter::wire {

error decode_error(const byte_source& source, const caf::error& cause) {
  const auto at = std::to_string(source.position());
  const auto all = std::to_string(source.position() + source.remaining());
  if (cause == caf::sec::end_of_stream)
    return {errc::malformed, "payload is cut short: what starts at byte " + at + " of " + all +
                                 " needs more bytes; do all ranks run the same build?"};
  return {errc::malformed, "payload is refused at byte " + at + " of " + all + " (code " +
                               std::to_string(cause.code()) +
                               "); do all ranks run the same build?"};
}

error trailing_error(const byte_source& source) {
  return {errc::malformed,
          "payload has " + std::to_string(source.remaining()) + " bytes more than its message (" +
              std::to_string(source.position()) + "); do all ranks run the same build?"};
}

} // namespace tokenrouter::wire
