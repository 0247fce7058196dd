#include "actors/link_state.hpp"

#include <algorithm>

namespace tokenrouter {

std::string compare(const hello& mine, const hello& theirs) {
  if (mine.config_hash != theirs.config_hash)
    return "it read another configuration: start every rank with the same file and --set values";
  if (mine.vocabulary_fingerprint != theirs.vocabulary_fingerprint)
    return "its tokenizer has another vocabulary: use the same model files on every host";
  return {};
}

link_state::link_state(rank_id self, std::uint64_t peer_timeout_us, std::uint64_t now_us)
    : self_(self), peer_timeout_us_(peer_timeout_us), last_heard_us_(now_us),
      last_sent_us_(now_us) {}

frame_header link_state::next_header(frame_kind kind, std::uint64_t now_us) {
  last_sent_us_ = now_us;
  frame_header header;
  header.kind = kind;
  header.source_rank = self_.value;
  header.sequence = kind == frame_kind::data ? ++sent_ : 0;
  header.acknowledged = received_;
  return header;
}

frame_verdict link_state::on_frame(const frame_header& header, std::uint64_t now_us) {
  if (!peer_epoch_)
    peer_epoch_ = header.epoch;
  if (header.epoch != *peer_epoch_)
    return frame_verdict::drop;
  last_heard_us_ = now_us;
  if (header.acknowledged > sent_)
    return frame_verdict::broken;
  acknowledged_ = std::max(acknowledged_, header.acknowledged);
  if (header.kind == frame_kind::goodbye)
    left_ = true;
  if (header.kind != frame_kind::data)
    return frame_verdict::control;
  if (header.sequence != received_ + 1)
    return frame_verdict::broken;
  ++received_;
  return frame_verdict::deliver;
}

bool link_state::heartbeat_due(std::uint64_t now_us, std::uint64_t period_us) const {
  return !left_ && now_us - last_sent_us_ >= period_us;
}

std::optional<std::uint64_t> link_state::timed_out(std::uint64_t now_us) const {
  if (left_ || now_us - last_heard_us_ < peer_timeout_us_)
    return std::nullopt;
  return now_us - last_heard_us_;
}

} // namespace tokenrouter
