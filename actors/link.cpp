#include "actors/link.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/core/log.hpp"
#include "runtime/wire/codec.hpp"
#include "runtime/wire/frame_check.hpp"

namespace tokenrouter {

namespace {

using self_pointer = link_actor::stateful_pointer<link_box>;

void tell_closed(self_pointer self) {
  auto& box = self->state;
  if (!box.closing || box.closed || !(box.down || box.core->closed()))
    return;
  box.closed = true;
  if (box.options.on_closed)
    box.options.on_closed();
}

void report_down(self_pointer self, std::string why) {
  auto& box = self->state;
  if (box.down)
    return;
  box.down = true;
  if (const auto damaged = box.core->damaged_frames(); damaged > 0)
    why += "; " + std::to_string(damaged) + " frames came damaged, the last: " + box.last_damage;
  box.options.wire->forget(box.options.peer);
  self->send(box.options.observer, peer_down{box.options.peer, std::move(why)});
  tell_closed(self);
}

/// One timer is always ahead; when an earlier one is wanted, the later one fires in vain.
void set_timer(self_pointer self, std::uint64_t now_us) {
  auto& box = self->state;
  const auto due_us = box.core->due_us();
  if (box.down || !due_us || (box.timer_us && *box.timer_us <= *due_us))
    return;
  box.timer_us = std::max(*due_us, now_us);
  self->delayed_send(self, std::chrono::microseconds(*box.timer_us - now_us),
                     caf::tick_atom::value);
}

/// Sends all that may go now.
void flush(self_pointer self, std::uint64_t now_us) {
  auto& box = self->state;
  while (!box.down) {
    auto frame = box.core->take_outgoing(now_us);
    if (!frame)
      break;
    const auto header = make_frame(frame->header, frame->payload);
    auto sent = box.options.wire->send(box.options.peer, header, std::move(frame->payload));
    if (!sent)
      report_down(self, sent.error().message);
  }
  set_timer(self, now_us);
  tell_closed(self);
}

void post(self_pointer self, frame_kind kind, std::vector<std::byte> payload) {
  auto& box = self->state;
  box.core->post(kind, std::move(payload));
  flush(self, box.options.now_us());
}

void take_hello(self_pointer self, std::span<const std::byte> payload) {
  auto& box = self->state;
  const auto theirs = decode<hello>(payload);
  if (!theirs) {
    report_down(self, "its handshake can't be read: " + theirs.error().message);
    return;
  }
  if (auto why = compare(box.options.greeting, *theirs); !why.empty()) {
    report_down(self, std::move(why));
    return;
  }
  box.core->greet();
}

void deliver(self_pointer self, frame_kind kind, std::vector<std::byte> payload) {
  auto& box = self->state;
  if (kind == frame_kind::hello)
    take_hello(self, payload);
  else if (!box.core->greeted())
    report_down(self, "it sent data before its handshake");
  else if (kind == frame_kind::data)
    self->send(box.options.outlet, wire_payload{box.options.peer, std::move(payload)});
  else
    self->send(box.options.outlet, peer_left{box.options.peer});
}

void take_damaged(self_pointer self, error what) {
  auto& box = self->state;
  if (what.code == errc::mismatch) {
    report_down(self, "a frame can't be read: " + what.message);
    return;
  }
  if (box.core->damaged_frames() == 0)
    spdlog::warn("{}; it counts as lost", what.message);
  box.core->on_damaged_frame();
  box.last_damage = std::move(what.message);
}

void take_frame(self_pointer self, incoming_frame&& x) {
  auto& box = self->state;
  if (box.down)
    return;
  if (auto sound = check_frame(x.header, x.payload); !sound) {
    take_damaged(self, std::move(sound.error()));
    return;
  }
  const std::uint64_t now_us = box.options.now_us();
  switch (box.core->on_frame(x.header, x.payload, now_us)) {
  case frame_verdict::deliver:
    deliver(self, x.header.kind, std::move(x.payload));
    while (auto next = box.core->next_ready())
      deliver(self, next->kind, std::move(next->payload));
    break;
  case frame_verdict::kept:
  case frame_verdict::control:
  case frame_verdict::drop:
    break;
  case frame_verdict::broken:
    report_down(self, "it acknowledges or numbers frames that can't be");
    break;
  }
  flush(self, now_us);
}

void tick(self_pointer self) {
  auto& box = self->state;
  const std::uint64_t now_us = box.options.now_us();
  if (box.down || !box.timer_us || now_us < *box.timer_us)
    return;
  const std::uint64_t late_us = now_us - *std::exchange(box.timer_us, std::nullopt);
  if (late_us >= box.options.heartbeat_us)
    box.core->forgive(late_us);
  if (const auto silence_us = box.core->timed_out(now_us))
    report_down(self, "no sign of life for " + std::to_string(*silence_us / 1000) + " ms");
  else if (const auto stalled_us = box.core->stalled(now_us))
    report_down(self, "it lives, but nothing has got through to it for " +
                          std::to_string(*stalled_us / 1000) + " ms");
  box.core->on_time(now_us, box.options.wire->pending_sends() > 0);
  flush(self, now_us);
}

void close(self_pointer self) {
  if (std::exchange(self->state.closing, true))
    return;
  post(self, frame_kind::goodbye, {});
}

link_settings settings_of(const link_options& options) {
  link_settings x;
  x.self = options.self;
  x.heartbeat_us = options.heartbeat_us;
  x.peer_timeout_us = options.peer_timeout_us;
  return x;
}

} // namespace

link_actor::behavior_type link(self_pointer self, link_options options) {
  auto& box = self->state;
  box.options = std::move(options);
  box.core.emplace(settings_of(box.options), box.options.now_us());
  post(self, frame_kind::hello, encode(box.options.greeting));
  return {
      [self](wire_payload& x) { post(self, frame_kind::data, std::move(x.bytes)); },
      [self](incoming_frame& x) { take_frame(self, std::move(x)); },
      [self](caf::tick_atom) { tick(self); },
      [self](caf::close_atom) { close(self); },
  };
}

} // namespace tokenrouter
