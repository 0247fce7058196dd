#include "actors/link_send_window.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

constexpr std::size_t ring_slots_min = 16;

/// A buffer that grew beyond this is not kept for the next frame.
constexpr std::size_t spare_bytes_max = std::size_t{64} << 10;

/// Two, not one: a frame that the network doubled is acknowledged twice as well.
constexpr std::uint32_t repeats_of_a_hole = 2;

/// Fewer resends than this say nothing about the peer.
constexpr std::uint32_t stalled_tries_min = 3;

} // namespace

link_send_window::link_send_window(send_window_limits limits)
    : limits_(limits), kept_(ring_slots_min), resend_us_(limits.resend_min_us) {
  check(limits.frames_max > 0, "a window lets one frame through");
}

void link_send_window::post(frame_kind kind, std::vector<std::byte> payload) {
  waiting_.push_back({kind, 0, std::move(payload)});
}

bool link_send_window::has_credit(std::size_t bytes) const {
  return unacknowledged() == 0 ||
         (unacknowledged() < limits_.frames_max && open_bytes_ + bytes <= limits_.bytes_max);
}

std::optional<numbered_frame> link_send_window::take(std::uint64_t now_us) {
  if (std::exchange(resend_first_, false)) {
    const auto& first = kept(acknowledged_ + 1);
    ++resent_frames_;
    waits_since_us_ = now_us;
    return numbered_frame{first.kind, acknowledged_ + 1, first.payload};
  }
  if (waiting_.empty() || !has_credit(waiting_.front().payload.size()))
    return std::nullopt;
  if (unacknowledged() == 0)
    progress_us_ = waits_since_us_ = now_us;
  auto frame = std::move(waiting_.front());
  waiting_.pop_front();
  frame.sequence = ++sent_;
  keep(frame);
  return frame;
}

void link_send_window::keep(const numbered_frame& frame) {
  if (unacknowledged() > kept_.size()) {
    std::vector<kept_frame> larger(kept_.size() * 2);
    for (auto i = acknowledged_ + 1; i < sent_; ++i)
      larger[i & (larger.size() - 1)] = std::move(kept(i));
    kept_ = std::move(larger);
  }
  auto& slot = kept(frame.sequence);
  slot.kind = frame.kind;
  slot.payload.assign(frame.payload.begin(), frame.payload.end());
  open_bytes_ += frame.payload.size();
}

void link_send_window::drop_kept(std::uint64_t sequence) {
  auto& payload = kept(sequence).payload;
  open_bytes_ -= payload.size();
  if (payload.capacity() > spare_bytes_max)
    payload = {};
}

void link_send_window::start_recovery() {
  resend_first_ = true;
  recover_until_ = sent_;
  ++tries_;
}

bool link_send_window::acknowledge(std::uint64_t sequence, bool alone, std::uint64_t now_us) {
  if (sequence > sent_)
    return false;
  if (sequence < acknowledged_)
    return true;
  if (sequence == acknowledged_) {
    const bool recovering = acknowledged_ < recover_until_;
    if (alone && unacknowledged() > 0 && ++repeats_ >= repeats_of_a_hole && !recovering)
      start_recovery();
    return true;
  }
  for (auto i = acknowledged_ + 1; i <= sequence; ++i)
    drop_kept(i);
  acknowledged_ = sequence;
  repeats_ = tries_ = 0;
  resend_us_ = limits_.resend_min_us;
  progress_us_ = waits_since_us_ = now_us;
  resend_first_ = acknowledged_ < recover_until_;
  return true;
}

void link_send_window::on_time(std::uint64_t now_us, bool wire_busy) {
  const auto due = due_us();
  if (!due || now_us < *due)
    return;
  waits_since_us_ = now_us;
  if (wire_busy)
    return;
  resend_us_ = std::min(resend_us_ * 2, limits_.resend_max_us);
  start_recovery();
}

std::uint64_t link_send_window::stalled_us(std::uint64_t now_us) const {
  const bool stalls = unacknowledged() > 0 && tries_ >= stalled_tries_min;
  return stalls && now_us > progress_us_ ? now_us - progress_us_ : 0;
}

void link_send_window::abandon() {
  waiting_.clear();
  for (auto i = acknowledged_ + 1; i <= sent_; ++i)
    drop_kept(i);
  acknowledged_ = sent_;
  resend_first_ = false;
}

} // namespace tokenrouter
