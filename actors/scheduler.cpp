#include "actors/scheduler.hpp"

#include <algorithm>
#include <chrono>

namespace tokenrouter {

namespace {

using self_pointer = scheduler_actor::stateful_pointer<scheduler_box>;

/// Tokens and trace events can wait until the next step is on its way: the model must not.
void flush_results(self_pointer self) {
  auto& box = self->state;
  auto& fx = box.effects;
  for (auto& [home, batch] : fx.commits)
    self->send(box.options.outlet, std::move(batch));
  fx.commits.clear();
  for (auto& x : fx.released_requests)
    self->send(box.options.outlet, x);
  fx.released_requests.clear();
  if (box.options.tracer && !fx.trace.empty())
    self->send(box.options.tracer, std::exchange(fx.trace, {}));
}

/// Steps are formed by a message to oneself, so that everything already in the mailbox (handoffs,
/// releases) is drained before a batch is planned.
void request_tick(self_pointer self) {
  auto& box = self->state;
  if (!box.work)
    flush_results(self); // no step is formed before the one under way is back
  if (box.tick_sent || box.leasing || !box.work)
    return;
  box.tick_sent = true;
  self->send(self, caf::tick_atom::value);
}

/// Sends what the others wait for: turns, what the pool must know.
void flush(self_pointer self) {
  auto& box = self->state;
  auto& fx = box.effects;
  const auto& outlet = box.options.outlet;
  for (auto& x : fx.handoffs)
    self->send(outlet, std::move(x));
  for (auto& x : fx.gaps)
    self->send(outlet, x);
  if (!fx.failures.empty())
    flush_results(self);
  for (auto& x : fx.failures)
    self->send(outlet, std::move(x));
  if (fx.report)
    self->send(outlet, std::move(*fx.report));
  for (auto& x : fx.queries)
    self->send(box.options.pool, std::move(x));
  for (auto& x : fx.fetches)
    self->send(box.options.fetcher, std::move(x));
  for (auto& x : fx.remember)
    self->send(box.options.pool, std::move(x));
  if (!fx.park.empty())
    self->send(box.options.pool, park{std::move(fx.park)});
  for (auto x : fx.give_back)
    self->send(box.options.pool, give_back_blocks{x});
  fx.clear_sent();
  const bool busy = box.core->live_requests() > 0;
  if (busy != box.busy) {
    box.busy = busy;
    box.options.in_flight(busy);
    for (std::uint16_t i = 1; i < box.options.shards; ++i)
      self->send(outlet, shard_awake{{box.options.config.self, i}, busy});
  }
}

void start_step(self_pointer self, const lease_grant& grant) {
  auto& box = self->state;
  box.leasing = false;
  const std::uint64_t now_us = box.options.now_us();
  if (!box.core->commit_plan(grant, now_us, box.work->in)) {
    // Blocks that KV on its way holds up come back by themselves, and that is told.
    if (grant.loans || box.core->fetches() > 0)
      flush_results(self);
    else
      request_tick(self);
    return;
  }
  box.work->sent_us = box.step_sent_us = now_us;
  for (std::uint16_t i = 1; i < box.options.shards; ++i)
    self->send(box.options.outlet, shard_step{{box.options.config.self, i}, box.work->in});
  self->send(box.options.model, run_step{std::move(box.work)});
  flush_results(self);
}

/// Too few requests wait for a step: it starts when more come, or at the latest when this fires.
void wait_for_more(self_pointer self) {
  auto& box = self->state;
  const auto until_us = box.core->delayed_until_us();
  if (!until_us || box.timer_us == *until_us)
    return;
  box.timer_us = *until_us;
  self->delayed_send(self, std::chrono::microseconds(*until_us - box.options.now_us()),
                     caf::tick_atom::value);
}

void tick(self_pointer self) {
  auto& box = self->state;
  box.tick_sent = false;
  if (box.leasing || !box.work)
    return;
  auto lacking = box.core->plan(box.options.now_us());
  if (!lacking) {
    flush_results(self);
    wait_for_more(self);
    return;
  }
  if (lacking->wants.empty()) {
    start_step(self, {});
    return;
  }
  box.leasing = true;
  self->request(box.options.pool, caf::infinite, std::move(*lacking))
      .then([self](const lease_grant& grant) { start_step(self, grant); });
}

void tell_status(self_pointer self, const status_query& x) {
  const auto& box = self->state;
  replica_status out{x.number, x.home, x.to, 0, 0, 0};
  if (!box.work)
    out.step_age_us = std::max<std::uint64_t>(box.options.now_us() - box.step_sent_us, 1);
  self->request(box.options.pool, caf::infinite, caf::get_atom::value)
      .then([self, out](const pool_facts& pool) mutable {
        out.total_blocks = pool.total_blocks;
        out.used_blocks = pool.total_blocks - pool.free_blocks - pool.cached_blocks;
        self->send(self->state.options.outlet, out);
      });
}

} // namespace

scheduler_actor::behavior_type scheduler(self_pointer self, scheduler_options options) {
  auto& box = self->state;
  box.options = std::move(options);
  box.core.emplace(box.options.config, box.options.make_role());
  box.work = std::make_shared<step_work>();
  return {
      [self](const announce& x) {
        self->state.core->on_announce(x.request);
        request_tick(self); // a threshold may be lower for more live requests
      },
      [self](handoff& x) {
        auto& b = self->state;
        b.core->on_handoff(std::move(x), b.options.now_us(), b.effects);
        flush(self);
        request_tick(self);
      },
      [self](const handoff_gap& x) {
        auto& b = self->state;
        b.core->on_gap(x, b.options.now_us(), b.effects);
        flush(self);
        request_tick(self);
      },
      [self](const recall& x) {
        auto& b = self->state;
        b.core->on_recall(x, b.effects);
        flush(self);
        request_tick(self);
      },
      [self](const release& x) {
        auto& b = self->state;
        b.core->on_release(x.request, b.effects);
        flush(self);
        request_tick(self); // … or for fewer
      },
      [self](const replicas_lost& x) {
        auto& b = self->state;
        b.core->on_replicas_lost(x.replicas, b.effects);
        flush(self);
        request_tick(self);
      },
      [self](batching_update& x) {
        self->state.core->set_thresholds(std::move(x.thresholds));
        request_tick(self);
      },
      [self](const prefix_hit& x) {
        self->state.core->on_prefix(x, self->state.effects);
        flush(self);
        request_tick(self);
      },
      [self](const prefix_fetched& x) {
        self->state.core->on_fetched(x, self->state.effects);
        flush(self);
        request_tick(self);
      },
      [self](blocks_back) { request_tick(self); },
      [self](step_done& x) {
        auto& b = self->state;
        b.work = std::move(x.work);
        b.core->on_step_done(*b.work, b.options.now_us(), b.effects);
        if (b.options.config.trace)
          scheduler_state::stamp_route_time(b.effects, b.options.now_us());
        flush(self);
        request_tick(self);
      },
      [self](const status_query& x) { tell_status(self, x); },
      [self](caf::tick_atom) { tick(self); },
  };
}

} // namespace tokenrouter
