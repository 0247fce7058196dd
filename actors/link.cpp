#include "actors/link.hpp"

#include <chrono>

#include "runtime/wire/codec.hpp"
#include "runtime/wire/frame_check.hpp"

namespace tokenrouter {

namespace {

using self_pointer = link_actor::stateful_pointer<link_box>;

void report_down(self_pointer self, std::string why) {
  auto& box = self->state;
  if (box.down)
    return;
  box.down = true;
  box.options.wire->forget(box.options.peer);
  self->send(box.options.observer, peer_down{box.options.peer, std::move(why)});
}

void send_frame(self_pointer self, frame_kind kind, std::vector<std::byte> payload) {
  auto& box = self->state;
  if (box.down)
    return;
  const auto header = make_frame(box.core->next_header(kind, box.options.now_us()), payload);
  auto sent = box.options.wire->send(box.options.peer, header, std::move(payload));
  if (!sent)
    report_down(self, sent.error().message);
}

void take_hello(self_pointer self, const incoming_frame& x) {
  auto& box = self->state;
  const auto theirs = decode<hello>(x.payload);
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

void take_frame(self_pointer self, incoming_frame&& x) {
  auto& box = self->state;
  if (box.down)
    return;
  if (auto sound = check_frame(x.header, x.payload); !sound) {
    report_down(self, "a frame can't be trusted: " + sound.error().message);
    return;
  }
  switch (box.core->on_frame(x.header, box.options.now_us())) {
  case frame_verdict::deliver:
    if (box.core->greeted())
      self->send(box.options.outlet, wire_payload{box.options.peer, std::move(x.payload)});
    else
      report_down(self, "it sent data before its handshake");
    break;
  case frame_verdict::control:
    if (x.header.kind == frame_kind::hello)
      take_hello(self, x);
    else if (x.header.kind == frame_kind::goodbye)
      self->send(box.options.outlet, peer_left{box.options.peer});
    break;
  case frame_verdict::drop:
    break;
  case frame_verdict::broken:
    report_down(self, "a frame is missing or out of order");
    break;
  }
}

void beat(self_pointer self) {
  auto& box = self->state;
  const std::uint64_t now_us = box.options.now_us();
  if (box.down)
    return;
  if (const auto silence_us = box.core->timed_out(now_us)) {
    report_down(self, "no sign of life for " + std::to_string(*silence_us / 1000) + " ms");
    return;
  }
  if (box.core->heartbeat_due(now_us, box.options.heartbeat_us))
    send_frame(self, frame_kind::heartbeat, {});
  self->delayed_send(self, std::chrono::microseconds(box.options.heartbeat_us),
                     caf::tick_atom::value);
}

} // namespace

link_actor::behavior_type link(self_pointer self, link_options options) {
  auto& box = self->state;
  box.options = std::move(options);
  box.core.emplace(box.options.self, box.options.peer_timeout_us, box.options.now_us());
  send_frame(self, frame_kind::hello, encode(box.options.greeting));
  self->delayed_send(self, std::chrono::microseconds(box.options.heartbeat_us),
                     caf::tick_atom::value);
  return {
      [self](wire_payload& x) { send_frame(self, frame_kind::data, std::move(x.bytes)); },
      [self](incoming_frame& x) { take_frame(self, std::move(x)); },
      [self](caf::tick_atom) { beat(self); },
      [self](caf::close_atom) { send_frame(self, frame_kind::goodbye, {}); },
  };
}

} // namespace tokenrouter
