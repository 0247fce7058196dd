#include "actors/scheduler.hpp"

namespace tokenrouter {

namespace {

using self_pointer = scheduler_actor::stateful_pointer<scheduler_box>;

/// Steps are formed by a message to oneself, so that everything already in the mailbox (handoffs,
/// releases) is drained before a batch is planned.
void request_tick(self_pointer self) {
  auto& box = self->state;
  if (box.tick_sent || box.leasing || !box.work)
    return;
  box.tick_sent = true;
  self->send(self, caf::tick_atom::value);
}

void flush(self_pointer self) {
  auto& box = self->state;
  auto& fx = box.effects;
  const auto& outlet = box.options.outlet;
  for (auto& x : fx.handoffs)
    self->send(outlet, std::move(x));
  for (auto& x : fx.gaps)
    self->send(outlet, x);
  for (auto& [home, batch] : fx.commits)
    self->send(outlet, std::move(batch));
  for (auto& x : fx.failures)
    self->send(outlet, std::move(x));
  for (auto x : fx.park)
    self->send(box.options.pool, park{x});
  for (auto x : fx.give_back)
    self->send(box.options.pool, give_back_blocks{x});
  for (auto& x : fx.released_requests)
    self->send(outlet, x);
  if (box.options.tracer && !fx.trace.empty())
    self->send(box.options.tracer, std::move(fx.trace));
  fx = {};
  const bool busy = box.core->live_requests() > 0;
  if (busy != box.busy) {
    box.busy = busy;
    box.options.in_flight(busy);
  }
}

void start_step(self_pointer self, const lease_grant& grant) {
  auto& box = self->state;
  box.leasing = false;
  const std::uint64_t now_us = box.options.now_us();
  if (!box.core->commit_plan(grant, now_us, box.work->in)) {
    request_tick(self);
    return;
  }
  box.work->sent_us = now_us;
  self->send(box.options.model, run_step{std::move(box.work)});
}

void tick(self_pointer self) {
  auto& box = self->state;
  box.tick_sent = false;
  if (box.leasing || !box.work)
    return;
  auto wants = box.core->plan(box.options.now_us());
  if (wants.empty())
    return;
  box.leasing = true;
  self->request(box.options.pool, caf::infinite, lease{std::move(wants)})
      .then([self](const lease_grant& grant) { start_step(self, grant); });
}

} // namespace

scheduler_actor::behavior_type scheduler(self_pointer self, scheduler_options options) {
  auto& box = self->state;
  box.options = std::move(options);
  box.core.emplace(box.options.config, box.options.make_role());
  box.work = std::make_shared<step_work>();
  return {
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
      },
      [self](const release& x) {
        auto& b = self->state;
        b.core->on_release(x.request, b.effects);
        flush(self);
      },
      [self](step_done& x) {
        auto& b = self->state;
        b.work = std::move(x.work);
        b.core->on_step_done(*b.work, b.options.now_us(), b.effects);
        if (b.options.config.trace)
          scheduler_state::stamp_route_time(b.effects, b.options.now_us());
        flush(self);
        request_tick(self);
      },
      [self](caf::tick_atom) { tick(self); },
  };
}

} // namespace tokenrouter
