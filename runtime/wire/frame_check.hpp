#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/error.hpp"
#include "runtime/wire/frame.hpp"

namespace tokenrouter {

/// Completes a header for that payload: sets `payload_bytes` and `checksum`, keeps the rest. The
/// checksum is the CRC-32C of the header with the CRC-32C of the payload in its `checksum`.
/// Requires payload.size() <= limits::frame_bytes_max.
frame_header make_frame(frame_header header, std::span<const std::byte> payload);

/// What a receiver checks before it looks into a payload. Errors: malformed (magic, length,
/// checksum or kind is wrong), capacity (longer than any frame): damaged on the way, as good as
/// lost; mismatch: sound, but of another protocol version.
result<void> check_frame(const frame_header& header, std::span<const std::byte> payload);

} // namespace tokenrouter
