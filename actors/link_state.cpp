#include "actors/link_state.hpp"

#include <algorithm>
#include <utility>

namespace tokenrouter {

std::string compare(const hello& mine, const hello& theirs) {
  if (mine.config_hash != theirs.config_hash)
    return "it read another configuration: start every rank with the same file and --set values";
  if (mine.vocabulary_fingerprint != theirs.vocabulary_fingerprint)
    return "its tokenizer has another vocabulary: use the same model files on every host";
  return {};
}

link_state::link_state(link_settings settings, std::uint64_t now_us)
    : settings_(settings), sending_({settings.window_frames_max, settings.window_bytes_max,
                                     settings.resend_us(), settings.heartbeat_us}),
      receiving_({settings.window_frames_max, settings.window_bytes_max, settings.ack_delay_us()}),
      last_heard_us_(now_us), last_sent_us_(now_us) {}

void link_state::post(frame_kind kind, std::vector<std::byte> payload) {
  closing_ = closing_ || kind == frame_kind::goodbye;
  if (!left_)
    sending_.post(kind, std::move(payload));
}

frame_header link_state::stamp(frame_kind kind, std::uint64_t sequence, std::uint64_t now_us) {
  last_sent_us_ = now_us;
  receiving_.acknowledged();
  frame_header header;
  header.kind = kind;
  header.source_rank = settings_.self.value;
  header.sequence = sequence;
  header.acknowledged = receiving_.received();
  return header;
}

std::optional<outgoing_frame> link_state::take_outgoing(std::uint64_t now_us) {
  if (auto frame = sending_.take(now_us))
    return outgoing_frame{stamp(frame->kind, frame->sequence, now_us), std::move(frame->payload)};
  if (receiving_.ack_wanted(now_us) || heartbeat_due(now_us))
    return outgoing_frame{stamp(frame_kind::heartbeat, 0, now_us), {}};
  return std::nullopt;
}

frame_verdict link_state::on_frame(const frame_header& header, std::vector<std::byte>& payload,
                                   std::uint64_t now_us) {
  if (!peer_epoch_)
    peer_epoch_ = header.epoch;
  if (header.epoch != *peer_epoch_)
    return frame_verdict::drop;
  last_heard_us_ = now_us;
  const bool numbered = header.kind != frame_kind::heartbeat;
  if (numbered != (header.sequence > 0) ||
      !sending_.acknowledge(header.acknowledged, !numbered, now_us))
    return frame_verdict::broken;
  if (!numbered)
    return frame_verdict::control;
  switch (receiving_.take(header.kind, header.sequence, payload, now_us)) {
  case arrival_order::next:
    note_delivery(header.kind);
    return frame_verdict::deliver;
  case arrival_order::early:
    return frame_verdict::kept;
  case arrival_order::repeated:
  case arrival_order::beyond:
    break;
  }
  return frame_verdict::drop;
}

std::optional<numbered_frame> link_state::next_ready() {
  auto frame = receiving_.next_ready();
  if (frame)
    note_delivery(frame->kind);
  return frame;
}

void link_state::note_delivery(frame_kind kind) {
  if (kind != frame_kind::goodbye)
    return;
  left_ = true;
  sending_.abandon();
  receiving_.acknowledge_now();
}

bool link_state::heartbeat_due(std::uint64_t now_us) const {
  return !over() && now_us - last_sent_us_ >= settings_.heartbeat_us;
}

std::optional<std::uint64_t> link_state::due_us() const {
  if (over())
    return std::nullopt;
  auto due = last_sent_us_ + settings_.heartbeat_us;
  due = std::min(due, receiving_.due_us().value_or(due));
  return std::min(due, sending_.due_us().value_or(due));
}

void link_state::forgive(std::uint64_t absence_us) {
  last_heard_us_ += absence_us;
  sending_.forgive(absence_us);
}

std::optional<std::uint64_t> link_state::timed_out(std::uint64_t now_us) const {
  if (over() || now_us < last_heard_us_ + settings_.peer_timeout_us)
    return std::nullopt;
  return now_us - last_heard_us_;
}

std::optional<std::uint64_t> link_state::stalled(std::uint64_t now_us) const {
  const auto stalled_us = sending_.stalled_us(now_us);
  if (over() || stalled_us < settings_.peer_timeout_us)
    return std::nullopt;
  return stalled_us;
}

} // namespace tokenrouter
