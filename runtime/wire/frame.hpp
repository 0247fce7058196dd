#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tokenrouter {

/// Version of everything that crosses ranks: frame header, message layouts, their meaning. Raised
/// by any change; ranks of different versions refuse each other in the handshake.
inline constexpr std::uint16_t protocol_version = 7;

enum class frame_kind : std::uint8_t {
  hello = 1,     ///< number 1 each way; a `hello` message
  data = 2,      ///< one encoded envelope
  heartbeat = 3, ///< no payload, no number; carries `acknowledged`
  goodbye = 4,   ///< orderly end: the sender will send nothing more
};

/// Stands before every payload, in host byte order (all ranks of a job are little-endian: checked
/// in the handshake).
struct frame_header {
  std::uint32_t magic = 0x46525254; ///< "TRRF"
  std::uint16_t version = protocol_version;
  frame_kind kind = frame_kind::data;
  std::uint8_t reserved = 0;
  std::uint32_t source_rank = 0;
  std::uint32_t epoch = 0;        ///< incarnation of the source; frames of an older one are dropped
  std::uint64_t sequence = 0;     ///< 1, 2, 3 … per peer; 0: a heartbeat
  std::uint64_t acknowledged = 0; ///< highest sequence the source has handed to its actors
  std::uint32_t payload_bytes = 0;
  std::uint32_t checksum = 0; ///< of header and payload: see frame_check.hpp
};

static_assert(sizeof(frame_header) == 40 && std::is_trivially_copyable_v<frame_header>);

} // namespace tokenrouter
