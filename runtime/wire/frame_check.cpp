#include "runtime/wire/frame_check.hpp"

#include <string>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/wire/crc32c.hpp"

namespace tokenrouter {

namespace {

std::uint32_t checksum_of(frame_header header, std::span<const std::byte> payload) {
  header.checksum = crc32c(payload);
  return crc32c(std::as_bytes(std::span(&header, 1)));
}

bool known(const frame_header& header) {
  return header.kind >= frame_kind::hello && header.kind <= frame_kind::goodbye &&
         header.reserved == 0;
}

error fault_of(const frame_header& header, std::span<const std::byte> payload) {
  const auto from = "frame of rank " + std::to_string(header.source_rank);
  if (header.magic != frame_header{}.magic)
    return {errc::malformed, from + " does not start with the magic number"};
  if (payload.size() > limits::frame_bytes_max)
    return {errc::capacity,
            from + " has " + std::to_string(payload.size()) + " bytes, more than any may have"};
  if (header.payload_bytes != payload.size())
    return {errc::malformed, from + " announces " + std::to_string(header.payload_bytes) +
                                 " bytes and has " + std::to_string(payload.size())};
  if (header.checksum != checksum_of(header, payload))
    return {errc::malformed, from + " has a wrong checksum; its bytes changed on the way"};
  if (header.version != protocol_version)
    return {errc::mismatch, from + " has protocol version " + std::to_string(header.version) +
                                ", this rank has " + std::to_string(protocol_version) +
                                "; start all ranks from one build"};
  return {errc::malformed,
          from + " is of unknown kind " + std::to_string(static_cast<unsigned>(header.kind))};
}

} // namespace

frame_header make_frame(frame_header header, std::span<const std::byte> payload) {
  check(payload.size() <= limits::frame_bytes_max, "frame longer than the limit");
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.checksum = checksum_of(header, payload);
  return header;
}

result<void> check_frame(const frame_header& header, std::span<const std::byte> payload) {
  if (header.magic == frame_header{}.magic && payload.size() <= limits::frame_bytes_max &&
      header.payload_bytes == payload.size() && header.checksum == checksum_of(header, payload) &&
      header.version == protocol_version && known(header))
    return {};
  return tl::unexpected(fault_of(header, payload));
}

} // namespace tokenrouter
