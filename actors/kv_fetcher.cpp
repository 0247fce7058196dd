#include "actors/kv_fetcher.hpp"

#include <caf/mailbox_element.hpp>
#include <fmt/format.h>

#include "actors/send_all.hpp"
#include "runtime/core/log.hpp"

namespace tokenrouter {

std::string describe_ways(const kv_ways& ways, const std::string& model_name,
                          const kv_fetcher_config& config, const std::string& carrier) {
  std::string way;
  if (!ways.alike)
    way = "not taken, its blocks are laid out otherwise";
  else if (ways.in_place == config.shards)
    way = "read in place";
  else if (ways.in_place == 0)
    way = "through " + carrier;
  else
    way = fmt::format("{} of {} shards read in place, the others through {}", ways.in_place,
                      config.shards, carrier);
  return fmt::format("KV of {}/{} for {}/{}: {}", model_name, ways.from.replica.index, model_name,
                     config.self.index, way);
}

namespace {

using self_pointer = kv_fetcher_actor::stateful_pointer<kv_fetcher_box>;

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
  const auto& o = box.options;
  const bool shown = o.config.self.index == 0 || o.config.siblings.size() <= siblings_shown_max;
  for (const kv_ways& x : std::exchange(box.effects.ways, {})) {
    const auto line = describe_ways(x, o.model_name, o.config, o.describe(x.from.rank));
    spdlog::info(line);
    if (shown)
      o.tell(line);
  }
}

void flush(self_pointer self) {
  auto& box = self->state;
  auto& fx = box.effects;
  const auto& o = box.options;
  send_all(self, o.outlet, fx.asks);
  send_all(self, o.outlet, fx.offers);
  send_all(self, o.outlet, fx.borrows);
  send_all(self, o.outlet, fx.loans);
  send_all(self, o.outlet, fx.returns);
  send_all(self, o.outlet, fx.fills);
  send_all(self, o.pool, fx.peeks);
  send_all(self, o.pool, fx.reserves);
  send_all(self, o.pool, fx.pins);
  send_all(self, o.pool, fx.unpins);
  send_joins(self);
  tell_ways(self);
  if (!box.settled && box.fetching->settled()) {
    box.settled = true;
    self->send(o.observer, kv_settled{o.config.self});
  }
}

} // namespace

kv_fetcher_actor::behavior_type kv_fetcher(self_pointer self, kv_fetcher_options options) {
  auto& box = self->state;
  box.options = std::move(options);
  box.fetching.emplace(box.options.config, box.options.now_us);
  box.serving.emplace(box.options.config);
  return {
      [self](fetch_prefix& x) {
        self->state.scheduler = self->current_sender();
        self->state.fetching->on_prefix(std::move(x), self->state.effects);
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
      [self](kv_borrow& x) {
        self->state.serving->on_borrow(std::move(x), self->state.effects);
        flush(self);
      },
      [self](kv_loan& x) {
        self->state.fetching->on_loan(std::move(x), self->state.effects);
        flush(self);
      },
      [self](const kv_return& x) {
        self->state.serving->on_return(x, self->state.effects);
        flush(self);
      },
      [self](const kv_way& x) {
        self->state.fetching->on_way(x, self->state.effects);
        flush(self);
      },
      [self](const kv_filled& x) {
        self->state.fetching->on_filled(x, self->state.effects);
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
      [self](const replicas_lost& x) {
        self->state.fetching->on_replicas_lost(x.replicas, self->state.effects);
        self->state.serving->on_replicas_lost(x.replicas, self->state.effects);
        flush(self);
      },
  };
}

} // namespace tokenrouter
