#include "runtime/transport/frame_gate.hpp"

#include "runtime/core/log.hpp"

namespace tokenrouter {

bool frame_gate::pass(rank_id from, const frame_header& header,
                      std::span<const std::byte> payload) {
  if (header.payload_bytes != payload.size()) {
    drop(from, "its size and its header disagree");
    return false;
  }
  if (!sink_) {
    drop(from, "nobody listens yet");
    return false;
  }
  sink_(from, header, payload);
  return true;
}

void frame_gate::drop(rank_id from, const char* why) {
  ++dropped_frames_;
  spdlog::warn("dropped a frame from rank {}: {}", from.value, why);
}

} // namespace tokenrouter
