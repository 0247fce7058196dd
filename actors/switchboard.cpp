#include "actors/switchboard.hpp"

#include "actors/envelope.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/log.hpp"

namespace tokenrouter {

namespace {

using self_pointer = switchboard_actor::stateful_pointer<switchboard_box>;

/// Sends to an actor of this rank that may not exist here.
template <class Handle, class Message>
void hand(self_pointer self, const Handle& target, Message&& x) {
  if (target)
    self->send(target, std::forward<Message>(x));
  else
    ++self->state.undeliverable;
}

/// The same, to the one of `actors` that the message is for.
template <class Actors, class Message>
void hand_to_one_of(self_pointer self, const Actors& actors, Message&& x) {
  const auto found = actors.find(x.to);
  hand(self, found == actors.end() ? typename Actors::mapped_type{} : found->second,
       std::forward<Message>(x));
}

void deliver(self_pointer self, announce&& x) {
  hand_to_one_of(self, self->state.local.schedulers, std::move(x));
}
void deliver(self_pointer self, handoff&& x) {
  hand_to_one_of(self, self->state.local.schedulers, std::move(x));
}
void deliver(self_pointer self, handoff_gap&& x) {
  hand_to_one_of(self, self->state.local.schedulers, std::move(x));
}
void deliver(self_pointer self, recall&& x) {
  hand_to_one_of(self, self->state.local.schedulers, std::move(x));
}
void deliver(self_pointer self, release&& x) {
  hand_to_one_of(self, self->state.local.schedulers, std::move(x));
}
void deliver(self_pointer self, commit_batch&& x) {
  hand(self, self->state.local.gateway, std::move(x));
}
void deliver(self_pointer self, request_failed&& x) {
  hand(self, self->state.local.gateway, std::move(x));
}
void deliver(self_pointer self, released&& x) {
  hand(self, self->state.local.gateway, std::move(x));
}
void deliver(self_pointer self, replica_report&& x) {
  hand(self, self->state.local.planner, std::move(x));
}
void deliver(self_pointer self, batching_update&& x) {
  hand_to_one_of(self, self->state.local.schedulers, std::move(x));
}
void deliver(self_pointer self, status_query&& x) {
  hand_to_one_of(self, self->state.local.schedulers, std::move(x));
}
void deliver(self_pointer self, replica_status&& x) {
  hand(self, self->state.local.gateway, std::move(x));
}
void deliver(self_pointer self, rank_ready&& x) {
  hand(self, self->state.local.supervisor, std::move(x));
}
void deliver(self_pointer self, peer_lost&& x) {
  hand(self, self->state.local.supervisor, std::move(x));
}
void deliver(self_pointer self, rank_lost&& x) {
  hand(self, self->state.local.supervisor, std::move(x));
}
void deliver(self_pointer self, end_job&& x) {
  hand(self, self->state.local.supervisor, std::move(x));
}

void deliver(self_pointer self, shard_invite&& x) {
  hand_to_one_of(self, self->state.local.shards, std::move(x));
}
void deliver(self_pointer self, shard_step&& x) {
  hand_to_one_of(self, self->state.local.shards, std::move(x));
}

void deliver(self_pointer self, prefix_ask&& x) {
  hand_to_one_of(self, self->state.local.fetchers, std::move(x));
}
void deliver(self_pointer self, prefix_offer&& x) {
  hand_to_one_of(self, self->state.local.fetchers, std::move(x));
}
void deliver(self_pointer self, kv_borrow&& x) {
  hand_to_one_of(self, self->state.local.fetchers, std::move(x));
}
void deliver(self_pointer self, kv_loan&& x) {
  hand_to_one_of(self, self->state.local.fetchers, std::move(x));
}
void deliver(self_pointer self, kv_return&& x) {
  hand_to_one_of(self, self->state.local.fetchers, std::move(x));
}
void deliver(self_pointer self, kv_way&& x) {
  hand_to_one_of(self, self->state.local.fetchers, std::move(x));
}
void deliver(self_pointer self, kv_filled&& x) {
  hand_to_one_of(self, self->state.local.fetchers, std::move(x));
}
void deliver(self_pointer self, kv_greeting&& x) {
  hand_to_one_of(self, self->state.local.movers, std::move(x));
}
void deliver(self_pointer self, kv_fill&& x) {
  hand_to_one_of(self, self->state.local.movers, std::move(x));
}
void deliver(self_pointer self, kv_wish&& x) {
  hand_to_one_of(self, self->state.local.movers, std::move(x));
}
void deliver(self_pointer self, kv_parcel&& x) {
  hand_to_one_of(self, self->state.local.movers, std::move(x));
}

void deliver(self_pointer self, shard_awake&& x) {
  if (self->state.options.shard_awake)
    self->state.options.shard_awake(x.awake);
}

template <class Places, class Id>
rank_id rank_of(const Places& places, const Id& id) {
  const auto found = places.find(id);
  check(found != places.end(), "a message goes to a replica or shard of the job");
  return found->second;
}

/// Shards that lead are where their replica is.
rank_id rank_of_any(const switchboard_options& o, const shard_id& id) {
  return id.index == 0 ? rank_of(o.placement, id.replica) : rank_of(o.shards, id);
}

rank_id destination(const switchboard_options& o, const announce& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const handoff& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const handoff_gap& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const recall& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const release& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options&, const commit_batch& x) {
  return x.home;
}
rank_id destination(const switchboard_options&, const request_failed& x) {
  return home_of(x.request);
}
rank_id destination(const switchboard_options&, const released& x) {
  return home_of(x.request);
}
rank_id destination(const switchboard_options&, const replica_report&) {
  return {0};
}
rank_id destination(const switchboard_options& o, const batching_update& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const status_query& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options&, const replica_status& x) {
  return x.home;
}
rank_id destination(const switchboard_options&, const rank_ready&) {
  return {0};
}
rank_id destination(const switchboard_options&, const peer_lost&) {
  return {0};
}
rank_id destination(const switchboard_options&, const rank_lost& x) {
  return x.to;
}
rank_id destination(const switchboard_options&, const end_job& x) {
  return x.to;
}
rank_id destination(const switchboard_options& o, const shard_invite& x) {
  return rank_of(o.shards, x.to);
}
rank_id destination(const switchboard_options& o, const shard_step& x) {
  return rank_of(o.shards, x.to);
}
rank_id destination(const switchboard_options& o, const shard_awake& x) {
  return rank_of(o.shards, x.to);
}

rank_id destination(const switchboard_options& o, const prefix_ask& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const prefix_offer& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const kv_borrow& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const kv_loan& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const kv_return& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const kv_way& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const kv_filled& x) {
  return rank_of(o.placement, x.to);
}
rank_id destination(const switchboard_options& o, const kv_greeting& x) {
  return rank_of_any(o, x.to);
}
rank_id destination(const switchboard_options& o, const kv_fill& x) {
  return rank_of_any(o, x.to);
}
rank_id destination(const switchboard_options& o, const kv_wish& x) {
  return rank_of_any(o, x.to);
}
rank_id destination(const switchboard_options& o, const kv_parcel& x) {
  return rank_of_any(o, x.to);
}

template <class Message>
void route(self_pointer self, Message&& x) {
  auto& box = self->state;
  const rank_id to = destination(box.options, x);
  if (to == box.options.self) {
    deliver(self, std::move(x));
    return;
  }
  const auto found = box.local.links.find(to);
  if (found == box.local.links.end() || box.lost.contains(to)) {
    ++box.undeliverable;
    return;
  }
  check(valid(x), "a message keeps its promises before it is encoded");
  self->send(found->second, wire_payload{to, seal(x)});
}

/// What came before from that rank was delivered before this: both pass here.
void lose(self_pointer self, const replicas_lost& x) {
  auto& box = self->state;
  box.lost.insert(x.rank);
  if (box.local.gateway)
    self->send(box.local.gateway, x);
  if (box.local.planner)
    self->send(box.local.planner, x);
  for (const auto& [id, one] : box.local.schedulers)
    self->send(one, x);
  for (const auto& [id, one] : box.local.fetchers)
    self->send(one, x);
  for (const auto& [id, one] : box.local.movers)
    self->send(one, x);
}

void take_payload(self_pointer self, const wire_payload& x) {
  if (self->state.lost.contains(x.peer)) {
    ++self->state.undeliverable;
    return;
  }
  const auto opened = open_envelope(
      x.bytes, [self](auto&& message) { deliver(self, std::forward<decltype(message)>(message)); });
  if (!opened) {
    ++self->state.undeliverable;
    spdlog::error("message from rank {} dropped: {}", x.peer.value, opened.error().message);
  }
}

} // namespace

switchboard_actor::behavior_type switchboard(self_pointer self, switchboard_options options) {
  self->state.options = std::move(options);
  return {
      [self](announce& x) { route(self, std::move(x)); },
      [self](handoff& x) { route(self, std::move(x)); },
      [self](const wire_payload& x) { take_payload(self, x); },
      [self](handoff_gap& x) { route(self, std::move(x)); },
      [self](commit_batch& x) { route(self, std::move(x)); },
      [self](request_failed& x) { route(self, std::move(x)); },
      [self](recall& x) { route(self, std::move(x)); },
      [self](release& x) { route(self, std::move(x)); },
      [self](released& x) { route(self, std::move(x)); },
      [self](replica_report& x) { route(self, std::move(x)); },
      [self](batching_update& x) { route(self, std::move(x)); },
      [self](status_query& x) { route(self, std::move(x)); },
      [self](replica_status& x) { route(self, std::move(x)); },
      [self](rank_ready& x) { route(self, std::move(x)); },
      [self](peer_lost& x) { route(self, std::move(x)); },
      [self](rank_lost& x) { route(self, std::move(x)); },
      [self](const replicas_lost& x) { lose(self, x); },
      [self](end_job& x) { route(self, std::move(x)); },
      [self](shard_step& x) { route(self, std::move(x)); },
      [self](shard_invite& x) { route(self, std::move(x)); },
      [self](shard_awake& x) { route(self, std::move(x)); },
      [self](prefix_ask& x) { route(self, std::move(x)); },
      [self](prefix_offer& x) { route(self, std::move(x)); },
      [self](kv_borrow& x) { route(self, std::move(x)); },
      [self](kv_loan& x) { route(self, std::move(x)); },
      [self](kv_return& x) { route(self, std::move(x)); },
      [self](kv_fill& x) { route(self, std::move(x)); },
      [self](kv_filled& x) { route(self, std::move(x)); },
      [self](kv_wish& x) { route(self, std::move(x)); },
      [self](kv_parcel& x) { route(self, std::move(x)); },
      [self](kv_greeting& x) { route(self, std::move(x)); },
      [self](kv_way& x) { route(self, std::move(x)); },
      [self](const peer_left& x) { hand(self, self->state.local.supervisor, x); },
      [self](local_actors& x) { self->state.local = std::move(x); },
  };
}

} // namespace tokenrouter
