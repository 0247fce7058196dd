#include "actors/supervisor.hpp"

#include <chrono>

namespace tokenrouter {

namespace {

using self_pointer = supervisor_actor::stateful_pointer<supervisor_box>;

void carry_out(self_pointer self, const std::optional<job_end>& end) {
  if (!end)
    return;
  auto& box = self->state;
  const auto& config = box.core->config();
  if (end->tell_peers)
    for (std::uint32_t r = 0; r < config.ranks; ++r)
      if (r != config.self.value)
        self->send(box.options.outlet, end_job{{r}, end->exit_code, end->reason});
  box.options.on_end(*end);
}

/// This rank goes on without another. The switchboard passes it on behind all that the rank sent.
void carry_out(self_pointer self, job_loss&& loss) {
  auto& box = self->state;
  if (box.options.on_loss)
    box.options.on_loss(loss);
  self->send(box.options.outlet, replicas_lost{loss.rank, std::move(loss.replicas)});
}

void carry_out(self_pointer self, peer_outcome&& x, const peer_down& what) {
  auto& box = self->state;
  carry_out(self, x.end);
  if (x.ask)
    self->send(box.options.outlet, peer_lost{what.peer, what.why});
  if (!x.loss)
    return;
  const auto& config = box.core->config();
  for (std::uint32_t r = 1; r < config.ranks; ++r)
    if (!box.core->lost_ranks().contains({r}))
      self->send(box.options.outlet, rank_lost{{r}, x.loss->rank});
  // If it lives after all, it learns that nobody counts on it.
  self->send(box.options.outlet,
             end_job{x.loss->rank, 1, "this rank was given up by the others: " + what.why});
  carry_out(self, std::move(*x.loss));
}

void take_failure(self_pointer self, model_failed&& x) {
  auto& box = self->state;
  if (!box.core->hold_failure(x)) {
    carry_out(self, box.core->on_model_failed(x));
    return;
  }
  x.waited = true;
  self->delayed_send(self, std::chrono::microseconds(box.options.loss_known_us), std::move(x));
}

void tell_ready(self_pointer self) {
  const auto& box = self->state;
  self->send(box.options.outlet, rank_ready{box.core->config().self, box.core->config().local});
}

void take_ready(self_pointer self, const rank_ready& x) {
  auto& box = self->state;
  auto all = box.core->on_rank_ready(x);
  if (!all)
    return;
  if (box.options.on_ready)
    box.options.on_ready(*all);
  if (box.options.gateway)
    self->send(box.options.gateway, open_gateway{std::move(*all)});
}

} // namespace

supervisor_actor::behavior_type supervisor(self_pointer self, supervisor_options options) {
  auto& box = self->state;
  box.options = std::move(options);
  box.core.emplace(box.options.config);
  if (box.options.config.local.empty() && box.options.config.followers == 0)
    self->send(box.options.outlet, rank_ready{box.options.config.self, {}});
  self->set_down_handler([self](const caf::down_msg& x) {
    auto& b = self->state;
    if (const auto found = b.watched.find(x.source.id()); found != b.watched.end())
      carry_out(self, b.core->on_actor_down(found->second.name, found->second.replica));
  });
  return {
      [self](const watch& x) {
        self->state.watched.emplace(x.who.id(), x);
        self->monitor(x.who);
      },
      [self](const model_loaded& x) {
        if (self->state.core->on_model_loaded(x.shard))
          tell_ready(self);
      },
      [self](const kv_settled& x) {
        if (self->state.core->on_kv_settled(x.replica))
          tell_ready(self);
      },
      [self](model_failed& x) { take_failure(self, std::move(x)); },
      [self](const rank_ready& x) { take_ready(self, x); },
      [self](const peer_down& x) { carry_out(self, self->state.core->on_peer_down(x), x); },
      [self](const peer_left& x) {
        carry_out(self, self->state.core->on_peer_left(x.peer), {x.peer, "it left"});
      },
      [self](const peer_lost& x) {
        carry_out(self, self->state.core->on_peer_lost(x), {x.peer, x.why});
      },
      [self](const rank_lost& x) {
        if (auto loss = self->state.core->on_rank_lost(x.lost))
          carry_out(self, std::move(*loss));
      },
      [self](const job_finished& x) {
        carry_out(self, self->state.core->on_finished(x.exit_code));
      },
      [self](const end_job& x) { carry_out(self, self->state.core->on_end(x)); },
  };
}

} // namespace tokenrouter
