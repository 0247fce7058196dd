#include "runtime/wire/codec.hpp"

#include <string>

namespace tokenrouter::wire {

namespace {

constexpr const char* advice = "; do all ranks run the same build?";

} // namespace

error decode_error(std::size_t position, std::size_t payload_bytes, wire_fault fault) {
  const auto where = "byte " + std::to_string(position) + " of " + std::to_string(payload_bytes);
  if (fault == wire_fault::cut_short)
    return {errc::malformed,
            "payload is cut short: what starts at " + where + " needs more bytes" + advice};
  return {errc::malformed, "payload has an impossible value before " + where + advice};
}

error trailing_error(std::size_t position, std::size_t payload_bytes) {
  return {errc::malformed, "payload has " + std::to_string(payload_bytes - position) +
                               " bytes more than its message (" + std::to_string(position) + ")" +
                               advice};
}

} // namespace tokenrouter::wire
