#include "actors/kv_mover.hpp"

#include <caf/send.hpp>

#include "actors/send_all.hpp"

namespace tokenrouter {

namespace {

using self_pointer = kv_mover_actor::stateful_pointer<kv_mover_box>;

void flush(self_pointer self) {
  auto& fx = self->state.effects;
  const auto& o = self->state.options;
  const auto& copier = self->state.copier;
  send_all(self, o.outlet, fx.greetings);
  send_all(self, o.outlet, fx.ways);
  send_all(self, o.outlet, fx.filled);
  send_all(self, o.outlet, fx.wishes);
  send_all(self, o.outlet, fx.parcels);
  if (!copier)
    return; // nothing has been asked of it
  send_all(self, copier, fx.reaches);
  send_all(self, copier, fx.exports);
  send_all(self, copier, fx.imports);
  send_all(self, copier, fx.direct_reads);
}

} // namespace

kv_mover_actor::behavior_type kv_mover(self_pointer self, kv_mover_options options) {
  auto& box = self->state;
  box.options = std::move(options);
  const caf::actor_addr me = self->address();
  box.state.emplace(box.options.config, *box.options.mover, [me](std::uint64_t transfer) {
    if (const auto one = caf::actor_cast<caf::actor>(me))
      caf::anon_send(one, bulk_news{transfer});
  });
  self->send(box.options.model, ask_kv{});
  return {
      [self](kv_greeting& x) {
        self->state.state->on_greeting(std::move(x), self->state.effects);
        flush(self);
      },
      [self](kv_fill& x) {
        self->state.state->on_fill(std::move(x), self->state.effects);
        flush(self);
      },
      [self](kv_wish& x) {
        self->state.state->on_wish(std::move(x), self->state.effects);
        flush(self);
      },
      [self](const kv_parcel& x) {
        self->state.state->on_parcel(x, self->state.effects);
        flush(self);
      },
      [self](const kv_facts& x) {
        self->state.copier = caf::actor_cast<kv_copier_actor>(self->current_sender());
        self->state.state->on_facts(x, self->state.effects);
        flush(self);
      },
      [self](const kv_reached& x) {
        self->state.state->on_reached(x, self->state.effects);
        flush(self);
      },
      [self](const blocks_exported& x) {
        self->state.state->on_exported(x, self->state.effects);
        flush(self);
      },
      [self](const blocks_imported& x) {
        self->state.state->on_imported(x, self->state.effects);
        flush(self);
      },
      [self](const bulk_news& x) {
        self->state.state->on_bulk(x.transfer, self->state.effects);
        flush(self);
      },
      [self](const replicas_lost& x) {
        self->state.state->on_replicas_lost(x.replicas, self->state.effects);
        flush(self);
      },
  };
}

} // namespace tokenrouter
