#include "runtime/wire/frame_check.hpp"

#include <string>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/wire/crc32c.hpp"

namespace tokenrouter {

frame_header make_frame(frame_header header, std::span<const std::byte> payload) {
  check(payload.size() <= limits::frame_bytes_max, "frame longer than the limit");
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.checksum = crc32c(payload);
  return header;
}

namespace {

bool is_sound(const frame_header& header, std::span<const std::byte> payload) {
  return header.magic == frame_header{}.magic && header.version == protocol_version &&
         header.kind >= frame_kind::hello && header.kind <= frame_kind::goodbye &&
         header.reserved == 0 && payload.size() <= limits::frame_bytes_max &&
         header.payload_bytes == payload.size() && header.checksum == crc32c(payload);
}

} // namespace

result<void> check_frame(const frame_header& header, std::span<const std::byte> payload) {
  if (is_sound(header, payload))
    return {};
  const auto from = "frame of rank " + std::to_string(header.source_rank);
  if (header.magic != frame_header{}.magic)
    return fail(errc::malformed, from + " does not start with the magic number");
  if (header.version != protocol_version)
    return fail(errc::mismatch, from + " has protocol version " + std::to_string(header.version) +
                                    ", this rank has " + std::to_string(protocol_version) +
                                    "; start all ranks from one build");
  if (header.kind < frame_kind::hello || header.kind > frame_kind::goodbye || header.reserved != 0)
    return fail(errc::malformed,
                from + " is of unknown kind " + std::to_string(static_cast<unsigned>(header.kind)));
  if (payload.size() > limits::frame_bytes_max)
    return fail(errc::capacity,
                from + " has " + std::to_string(payload.size()) + " bytes, more than any may have");
  if (header.payload_bytes != payload.size())
    return fail(errc::malformed, from + " announces " + std::to_string(header.payload_bytes) +
                                     " bytes and has " + std::to_string(payload.size()));
  return fail(errc::malformed, from + " has a wrong checksum; its bytes changed on the way");
}

} // namespace tokenrouter
