#pragma once

#include <functional>
#include <optional>
#include <string>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/link_state.hpp"
#include "actors/local_messages.hpp"
#include "runtime/transport/transport.hpp"

namespace tokenrouter {

/// The connection to one peer rank: order, credit, resending, heartbeat, handshake, death. The wire
/// may lose, repeat, reorder or damage frames; what is sent here arrives once and in order, or the
/// peer is reported down.
using link_actor = caf::typed_actor<caf::reacts_to<wire_payload>,     ///< to send
                                    caf::reacts_to<incoming_frame>,   ///< from the transport
                                    caf::reacts_to<caf::tick_atom>,   ///< its own timers
                                    caf::reacts_to<caf::close_atom>>; ///< say goodbye

/// Takes what the peer's actors sent, and its goodbye after that: the switchboard.
using link_outlet = caf::typed_actor<caf::reacts_to<wire_payload>, caf::reacts_to<peer_left>>;

/// Is told of the peer's death: the supervisor.
using link_observer = caf::typed_actor<caf::reacts_to<peer_down>>;

struct link_options {
  rank_id self;
  rank_id peer;
  hello greeting;
  std::uint64_t heartbeat_us = 200'000;
  std::uint64_t peer_timeout_us = 5'000'000;
  transport* wire = nullptr; ///< outlives the actor
  link_outlet outlet;
  link_observer observer;
  std::function<std::uint64_t()> now_us;
  /// Called once after `close_atom`, when nothing more will leave; may be null.
  std::function<void()> on_closed = nullptr;
};

struct link_box {
  link_options options;
  std::optional<link_state> core;
  bool down = false;                     ///< reported; nothing goes in or out any more
  bool closing = false;                  ///< our goodbye is on its way, behind all else
  bool closed = false;                   ///< told
  std::optional<std::uint64_t> timer_us; ///< when the earliest timer fires; later ones are stale
  std::string last_damage;               ///< what was wrong with the last damaged frame
};

link_actor::behavior_type link(link_actor::stateful_pointer<link_box> self, link_options options);

} // namespace tokenrouter
