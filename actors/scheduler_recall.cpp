#include <algorithm>

#include "actors/scheduler_state.hpp"

namespace tokenrouter {

/// Turns before `first` are void. Its tokens and KV stay: what the next handoff repeats of them
/// need not be computed again.
void scheduler_state::void_turns(sequence& s, turn_number first, scheduler_effects& fx) {
  ++counters_.recalls;
  s.turn = first - 1;
  s.sent_turn = 0;
  s.recalled = true;
  s.drop_match = s.matching;
  if (!s.has_turn)
    return;
  s.has_turn = false;
  s.blocks.clear();
  if (!s.in_step) // else the step still writes to its blocks
    fx.park.push_back({s.request, s.kv_tokens});
}

/// The row of a turn that is void. The KV that the step computed is not counted, so it is not
/// there.
void scheduler_state::drop_row(sequence& s, scheduler_effects& fx) {
  ++counters_.dropped_rows;
  if (s.doomed) {
    end_doomed(s, fx);
  } else if (!s.has_turn) {
    fx.park.push_back({s.request, s.kv_tokens});
  }
}

void scheduler_state::on_recall(const recall& x, scheduler_effects& fx) {
  if (retired_ || buried_.count(x.request) != 0)
    return;
  auto& s = sequences_[x.request];
  if (s.age == 0) {
    s.request = x.request;
    s.age = next_age_++;
  }
  if (s.turn < x.turn)
    void_turns(s, x.turn, fx);
}

/// Where this replica itself has lost a shard, its step may never end, and no home counts on it:
/// all goes, nothing starts any more. The others are shared by fewer now.
void scheduler_state::on_replicas_lost(std::span<const replica_id> lost, scheduler_effects& fx) {
  for (const replica_id one : lost) {
    retired_ = retired_ || one == config_.self;
    if (one.model == config_.self.model && config_.replicas > 1)
      --config_.replicas;
  }
  if (!retired_)
    return;
  for (const auto& [id, s] : sequences_)
    fx.give_back.push_back(id);
  sequences_.clear();
  announced_.clear();
  planned_.clear();
  running_.clear();
}

} // namespace tokenrouter
