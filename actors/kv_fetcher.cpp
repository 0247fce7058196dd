#include "actors/kv_fetcher.hpp"

#include <caf/mailbox_element.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>

#include "runtime/core/log.hpp"

namespace tokenrouter {

namespace {

using self_pointer = kv_fetcher_actor::stateful_pointer<kv_fetcher_box>;

template <class Target, class Message>
void send_all(self_pointer self, const Target& target, std::vector<Message>& messages) {
  for (auto& x : messages)
    self->send(target, std::move(x));
  messages.clear();
}

/// The pool answers the scheduler, so that its answer can't be overtaken by a later lease's.
void send_joins(self_pointer self) {
  auto& box = self->state;
  for (auto& x : box.effects.joins)
    caf::actor_cast<caf::actor>(box.options.pool)
        ->enqueue(box.scheduler, caf::make_message_id(), caf::make_message(std::move(x)),
                  self->context());
  box.effects.joins.clear();
}

/// In a job of many replicas the first one's ways stand for all.
constexpr std::size_t siblings_shown_max = 2;

void tell_ways(self_pointer self) {
  auto& box = self->state;
  const auto& config = box.options.config;
  const bool shown = config.self.index == 0 || config.siblings.size() <= siblings_shown_max;
  const auto tell = [&](const kv_sibling& from, const std::string& way) {
    const std::string line =
        fmt::format("KV of {}/{} for {}/{}: {}", box.options.model_name, from.replica.index,
                    box.options.model_name, config.self.index, way);
    spdlog::info(line);
    if (shown)
      box.options.tell(line);
  };
  for (const auto& from : box.effects.in_place)
    tell(from, "read in place");
  for (const auto& from : box.effects.by_bulk)
    tell(from, "through " + box.options.describe(from.rank));
  box.effects.in_place.clear();
  box.effects.by_bulk.clear();
}

void flush(self_pointer self) {
  auto& box = self->state;
  auto& fx = box.effects;
  const auto& o = box.options;
  send_all(self, o.outlet, fx.greetings);
  send_all(self, o.outlet, fx.asks);
  send_all(self, o.outlet, fx.offers);
  send_all(self, o.outlet, fx.fetches);
  send_all(self, o.outlet, fx.pieces);
  send_all(self, o.outlet, fx.reads);
  send_all(self, o.pool, fx.peeks);
  send_all(self, o.pool, fx.reserves);
  send_all(self, o.pool, fx.pins);
  send_all(self, o.pool, fx.unpins);
  send_all(self, o.model, fx.reaches);
  send_all(self, o.model, fx.exports);
  send_all(self, o.model, fx.imports);
  send_all(self, o.model, fx.direct_reads);
  send_joins(self);
  tell_ways(self);
  if (!box.settled && box.fetching->settled()) {
    box.settled = true;
    self->send(o.observer, kv_settled{o.config.self});
  }
}

void start(self_pointer self, kv_fetcher_options options) {
  auto& box = self->state;
  box.options = std::move(options);
  const caf::actor_addr me = self->address();
  const bulk_mover::observer told = [me](std::uint64_t transfer) {
    if (const auto one = caf::actor_cast<caf::actor>(me))
      caf::anon_send(one, bulk_news{transfer});
  };
  box.fetching.emplace(box.options.config, *box.options.mover, told);
  box.serving.emplace(box.options.config, *box.options.mover, told);
  self->send(box.options.model, ask_kv{});
}

void look_at(self_pointer self, std::uint64_t transfer) {
  auto& box = self->state;
  if (!box.fetching->on_bulk(transfer, box.effects))
    box.serving->on_bulk(transfer, box.effects);
  flush(self);
}

void lose(self_pointer self, const std::vector<replica_id>& replicas) {
  auto& box = self->state;
  box.fetching->on_replicas_lost(replicas, box.effects);
  box.serving->on_replicas_lost(replicas, box.effects);
  flush(self);
}

} // namespace

kv_fetcher_actor::behavior_type kv_fetcher(self_pointer self, kv_fetcher_options options) {
  start(self, std::move(options));
  return {
      [self](fetch_prefix& x) {
        self->state.scheduler = self->current_sender();
        self->state.fetching->on_prefix(std::move(x), self->state.effects);
        flush(self);
      },
      [self](kv_greeting& x) {
        self->state.fetching->on_greeting(std::move(x), self->state.effects);
        flush(self);
      },
      [self](prefix_ask& x) {
        self->state.serving->on_ask(std::move(x), self->state.effects);
        flush(self);
      },
      [self](const prefix_offer& x) {
        self->state.fetching->on_offer(x, self->state.effects);
        flush(self);
      },
      [self](kv_fetch& x) {
        self->state.serving->on_fetch(std::move(x), self->state.effects);
        flush(self);
      },
      [self](kv_piece& x) {
        self->state.fetching->on_piece(std::move(x), self->state.effects);
        flush(self);
      },
      [self](const kv_read& x) {
        self->state.serving->on_read(x, self->state.effects);
        flush(self);
      },
      [self](const prefix_known& x) {
        self->state.serving->on_known(x, self->state.effects);
        flush(self);
      },
      [self](blocks_reserved& x) {
        self->state.fetching->on_reserved(std::move(x), self->state.effects);
        flush(self);
      },
      [self](blocks_pinned& x) {
        self->state.serving->on_pinned(std::move(x), self->state.effects);
        flush(self);
      },
      [self](const kv_facts& x) {
        self->state.serving->set_bytes_per_block(x.bytes_per_block);
        self->state.fetching->on_facts(x, self->state.effects);
        flush(self);
      },
      [self](const kv_reached& x) {
        self->state.fetching->on_reached(x, self->state.effects);
        flush(self);
      },
      [self](const blocks_exported& x) {
        self->state.serving->on_exported(x, self->state.effects);
        flush(self);
      },
      [self](const blocks_imported& x) {
        self->state.fetching->on_imported(x, self->state.effects);
        flush(self);
      },
      [self](const bulk_news& x) { look_at(self, x.transfer); },
      [self](const replicas_lost& x) { lose(self, x.replicas); },
  };
}

} // namespace tokenrouter
