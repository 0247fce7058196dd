#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/error.hpp"
#include "runtime/wire/frame.hpp"

namespace tokenrouter {

/// Completes a header for that payload: sets `payload_bytes` and `checksum`, keeps the rest.
/// Requires payload.size() <= limits::frame_bytes_max.
frame_header make_frame(frame_header header, std::span<const std::byte> payload);

/// What a receiver checks before it looks into a payload. Errors: malformed (magic, kind, length or
/// checksum is wrong), mismatch (another protocol version), capacity (longer than any frame).
result<void> check_frame(const frame_header& header, std::span<const std::byte> payload);

} // namespace tokenrouter
