#include "actors/link_receive_window.hpp"

#include <utility>

namespace tokenrouter {

arrival_order link_receive_window::take(frame_kind kind, std::uint64_t sequence,
                                        std::vector<std::byte>& payload, std::uint64_t now_us) {
  if (sequence == received_ + 1) {
    ack_now_ = ack_now_ || !early_.empty();
    if (!ack_due_us_)
      ack_due_us_ = now_us + limits_.ack_delay_us;
    advance(payload.size());
    return arrival_order::next;
  }
  ack_now_ = true;
  if (sequence <= received_ || early_.contains(sequence)) {
    ++repeated_frames_;
    return arrival_order::repeated;
  }
  if (sequence - received_ > limits_.frames_max ||
      early_bytes_ + payload.size() > limits_.bytes_max + limits::frame_bytes_max)
    return arrival_order::beyond;
  ++early_frames_;
  early_bytes_ += payload.size();
  early_.emplace(sequence, numbered_frame{kind, sequence, std::move(payload)});
  return arrival_order::early;
}

std::optional<numbered_frame> link_receive_window::next_ready() {
  if (early_.empty() || early_.begin()->first != received_ + 1)
    return std::nullopt;
  auto frame = std::move(early_.begin()->second);
  early_.erase(early_.begin());
  early_bytes_ -= frame.payload.size();
  advance(frame.payload.size());
  return frame;
}

void link_receive_window::advance(std::size_t payload_bytes) {
  ++received_;
  ++open_frames_;
  open_bytes_ += payload_bytes;
  if (open_frames_ >= limits_.frames_max / 4 || open_bytes_ >= limits_.bytes_max / 4)
    ack_now_ = true;
}

void link_receive_window::acknowledged() {
  ack_now_ = false;
  ack_due_us_.reset();
  open_frames_ = 0;
  open_bytes_ = 0;
}

bool link_receive_window::ack_wanted(std::uint64_t now_us) const {
  return ack_now_ || (ack_due_us_ && now_us >= *ack_due_us_);
}

} // namespace tokenrouter
