#include "actors/scheduler_state.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/philox.hpp"
#include "runtime/policy/handoff.hpp"
#include "runtime/policy/turn_epoch.hpp"

namespace tokenrouter {

scheduler_state::scheduler_state(scheduler_config config, std::unique_ptr<const method_role> role)
    : config_(std::move(config)), role_(std::move(role)), needs_(role_->needs()),
      statistics_(config_.self, config_.models) {
  config_.thresholds.resize(config_.models);
}

void scheduler_state::on_announce(request_id request) {
  if (buried_.count(request) == 0)
    announced_.insert(request);
}

void scheduler_state::set_thresholds(std::vector<batching_thresholds> thresholds) {
  config_.thresholds = std::move(thresholds);
  config_.thresholds.resize(config_.models);
}

namespace {

handoff_local known_of(const sequence& s) {
  if (s.recalled)
    return {s.turn, {}, 0};
  return {s.turn, s.committed(), static_cast<std::uint32_t>(s.tentative.size())};
}

} // namespace

void scheduler_state::on_handoff(handoff&& x, std::uint64_t now_us, scheduler_effects& fx) {
  if (retired_ || buried_.count(x.request) != 0) {
    ++counters_.late_handoffs;
    return;
  }
  const auto found = sequences_.find(x.request);
  handoff_local local;
  if (found != sequences_.end()) {
    if (epoch_of(x.turn) > epoch_of(found->second.turn)) // it overtook the recall
      void_turns(found->second, first_turn(epoch_of(x.turn)), fx);
    local = known_of(found->second);
  }
  switch (judge_handoff(local, {x.turn, x.offset, x.tokens})) {
  case handoff_verdict::stale:
    ++counters_.stale_handoffs;
    return;
  case handoff_verdict::need_gap:
    ++counters_.gaps_asked;
    fx.gaps.push_back({x.request, x.turn, config_.self, x.from,
                       static_cast<std::uint32_t>(local.committed.size())});
    return;
  case handoff_verdict::diverged:
    fx.failures.push_back({x.request, errc::mismatch,
                           "turn " + std::to_string(x.turn) +
                               " contradicts tokens committed before; the sender is of another "
                               "state of this request"});
    return;
  case handoff_verdict::accept:
    break;
  }
  if (found != sequences_.end() && found->second.has_turn) {
    fx.failures.push_back({x.request, errc::mismatch,
                           "turn " + std::to_string(x.turn) + " came while this replica has turn " +
                               std::to_string(found->second.turn)});
    return;
  }
  auto& s = sequences_[x.request];
  if (s.turn == 0) {
    s.request = x.request;
    s.age = next_age_++;
  }
  const replica_id from = x.from;
  const std::uint32_t offset = x.offset;
  const auto shipped = static_cast<std::uint32_t>(x.tokens.size());
  s.take(std::move(x), config_.models, now_us);
  s.prepare(needs_);
  query_prefix(s, fx);
  if (config_.trace)
    fx.trace.handoffs.push_back({now_us, s.request.value, s.turn, s.length(), offset, shipped,
                                 from.model.value, config_.self.model.value, handoff_side::received,
                                 0, s.position_score.value});
}

void scheduler_state::on_gap(const handoff_gap& x, std::uint64_t now_us, scheduler_effects& fx) {
  const auto found = sequences_.find(x.request);
  if (found == sequences_.end() || found->second.has_turn || found->second.sent_turn != x.turn ||
      found->second.sent_to != x.from) {
    ++counters_.stale_handoffs;
    return;
  }
  const auto& s = found->second;
  const std::uint32_t offset = std::min({x.have_tokens, s.length() - 1, s.committed_tokens()});
  fx.handoffs.push_back(make_handoff(s, offset));
  if (config_.trace)
    fx.trace.handoffs.push_back({now_us, s.request.value, s.sent_turn, s.length(), offset,
                                 s.length() - offset, config_.self.model.value,
                                 s.sent_to.model.value, handoff_side::sent, 0,
                                 s.position_score.value});
}

void scheduler_state::on_release(request_id request, scheduler_effects& fx) {
  bury(request);
  announced_.erase(request);
  const auto found = sequences_.find(request);
  if (found == sequences_.end()) {
    fx.released_requests.push_back({request, config_.self, 0, 0, 0, 0, 0});
    return;
  }
  found->second.doomed = true;
  end_doomed(found->second, fx);
}

/// Not before what still writes for it has ended: each end comes here again.
void scheduler_state::end_doomed(sequence& s, scheduler_effects& fx) {
  if (s.in_step || s.fetching)
    return;
  const request_id request = s.request;
  forget(s, fx);
  sequences_.erase(request);
}

scheduler_state::waiting scheduler_state::list_waiting(std::uint64_t now_us) {
  waiting w;
  w.oldest_ready_us = now_us;
  for (auto& [id, s] : sequences_) {
    if (!s.has_turn || s.finished || s.matching)
      continue;
    check(s.kv_tokens < s.tokens.size(), "a sequence with the turn has a token to run");
    w.candidates.push_back(
        {static_cast<std::uint32_t>(w.sequences.size()), s.runnable_tokens(), s.age});
    w.sequences.push_back(&s);
    w.oldest_ready_us = std::min(w.oldest_ready_us, s.ready_since_us);
  }
  return w;
}

/// Too few wait for a step to be worth it, and none has waited too long.
bool scheduler_state::must_wait(const waiting& w, std::uint64_t now_us) {
  const std::uint32_t threshold =
      threshold_in_force({config_.thresholds, config_.self.model.value, config_.replicas,
                          static_cast<std::uint32_t>(announced_.size())});
  if (w.candidates.size() >= threshold)
    return false;
  if (config_.delay_timeout_us == 0)
    return true;
  const std::uint64_t until_us = w.oldest_ready_us + config_.delay_timeout_us;
  if (now_us < until_us) {
    delayed_until_us_ = until_us;
    return true;
  }
  ++counters_.delay_timeouts;
  return false;
}

std::optional<lease> scheduler_state::plan(std::uint64_t now_us) {
  delayed_until_us_.reset();
  if (retired_ || !running_.empty() || !planned_.empty())
    return std::nullopt;
  const auto w = list_waiting(now_us);
  if (w.candidates.empty() || must_wait(w, now_us))
    return std::nullopt;
  plan_started_us_ = now_us;
  oldest_ready_us_ = now_us;
  auto rows = plan_batch(w.candidates, config_.limits);
  for (auto& row : rows) {
    const sequence& s = *w.sequences[row.index];
    row.last = row.token_count == s.lacking_tokens();
    oldest_ready_us_ = std::min(oldest_ready_us_, s.ready_since_us);
  }
  return lease_for(w, rows);
}

/// Notes the rows as planned. Wants of those that lack blocks; if there are any, what the others
/// hold.
lease scheduler_state::lease_for(const waiting& w, std::span<const planned_row> rows) {
  lease out;
  constexpr std::uint32_t in_wants = ~std::uint32_t{0};
  std::vector<std::uint32_t> used_tokens; // of each sequence, after the step
  used_tokens.reserve(w.sequences.size());
  for (const sequence* s : w.sequences)
    used_tokens.push_back(s->kv_tokens);
  for (const auto& row : rows) {
    const auto& s = *w.sequences[row.index];
    const std::uint32_t end = s.kv_tokens + row.token_count;
    const bool asks = !s.blocks.cover(s.kv_tokens, end);
    planned_.push_back({s.request, row, s.turn, 0, s.lacking_tokens() > 1, asks});
    used_tokens[row.index] = asks ? in_wants : end;
    if (asks)
      out.wants.push_back(
          {s.request, end, s.age, s.kv_tokens,
           std::min(s.spec.max_new_tokens, config_.context_tokens_max) + s.spec.prompt_tokens});
  }
  if (out.wants.empty())
    return out;
  for (std::size_t i = 0; i < used_tokens.size(); ++i)
    if (used_tokens[i] != in_wants && !w.sequences[i]->blocks.table().empty())
      out.held.push_back({w.sequences[i]->request, used_tokens[i]});
  return out;
}

/// What the lease changed for those who did not ask.
void scheduler_state::take_grant(const lease_grant& grant) {
  for (const auto& one : grant.cut)
    if (const auto found = sequences_.find(one.request); found != sequences_.end())
      found->second.blocks.cut(one.tokens);
  for (request_id gone : grant.evicted) {
    const auto found = sequences_.find(gone);
    if (found == sequences_.end())
      continue;
    found->second.cut_kv(0);
    found->second.blocks.clear();
    if (found->second.has_turn)
      found->second.prepare(needs_);
    ++counters_.evictions;
  }
}

bool scheduler_state::commit_plan(const lease_grant& grant, std::uint64_t now_us, step_input& in) {
  if (retired_)
    return false;
  const auto asked = std::count_if(planned_.begin(), planned_.end(),
                                   [](const running_row& row) { return row.asked; });
  check(grant.granted.size() == static_cast<std::size_t>(asked),
        "a grant answers every want of the plan");
  take_grant(grant);
  in.clear();
  in.copies.assign(grant.copies.begin(), grant.copies.end());
  std::size_t want = 0, block_offset = 0;
  for (auto& row : planned_) {
    const auto found = sequences_.find(row.request);
    bool has_blocks = found != sequences_.end() && found->second.turn == row.turn;
    if (row.asked) {
      const std::size_t blocks = grant.block_counts[want];
      if (has_blocks)
        found->second.blocks.clear();
      has_blocks = has_blocks && grant.granted[want] != 0;
      if (has_blocks)
        found->second.blocks.grant(std::span(grant.block_tables).subspan(block_offset, blocks),
                                   found->second.kv_tokens, grant.own_tokens[want]);
      block_offset += blocks;
      ++want;
    } else if (has_blocks) {
      has_blocks = !found->second.blocks.table().empty(); // an older request may have taken them
    }
    if (!has_blocks)
      continue;
    append_row(found->second, row.plan, in);
    row.answered = found->second.answered_in(row.plan.token_count);
    found->second.in_step = true;
    running_.push_back(row);
  }
  planned_.clear();
  plan_done_us_ = now_us;
  return !running_.empty();
}

void scheduler_state::append_row(const sequence& s, const planned_row& plan, step_input& in) const {
  const auto blocks = s.blocks.table().first(blocks_for(s.kv_tokens + plan.token_count));
  step_row row;
  row.request = s.request;
  row.token_offset = static_cast<std::uint32_t>(in.tokens.size());
  row.token_count = plan.token_count;
  row.start_position = s.kv_tokens;
  row.block_offset = static_cast<std::uint32_t>(in.block_tables.size());
  row.block_count = static_cast<std::uint32_t>(blocks.size());
  in.block_tables.insert(in.block_tables.end(), blocks.begin(), blocks.end());
  row.answered_positions = s.answered_in(plan.token_count);
  row.signals = row.answered_positions > 0 ? needs_.signals : 0;
  if (s.scores_next())
    row.signals &= ~(signal::heads | signal::distribution);
  if (needs_.head_window_positions > 1)
    row.window_start_position = s.window_start(plan.token_count);
  row.sampling = s.spec.sampling;
  row.sample_stream =
      sample_stream(needs_.shares_sampling_stream ? std::uint16_t{0} : config_.self.model.value);
  if (row.answered_positions > 0)
    row.likeliest_count = s.spec.top_logprobs;
  if (s.scores_next()) {
    row.scored_offset = static_cast<std::uint32_t>(in.scored_tokens.size());
    row.scored_positions = row.answered_positions;
    for (std::uint32_t at = s.kv_tokens; at < s.kv_tokens + plan.token_count; ++at)
      in.scored_tokens.push_back(s.tokens[at + 1]);
  }
  if (plan.last && s.mix.weight.value > 0) {
    row.mix_weight = s.mix.weight.value;
    row.mix_offset = static_cast<std::uint32_t>(in.mixes.size());
    for (const auto& p : s.mix.distribution)
      in.mixes.push_back(p.value);
  }
  in.tokens.insert(in.tokens.end(), s.tokens.begin() + s.kv_tokens,
                   s.tokens.begin() + s.kv_tokens + plan.token_count);
  in.rows.push_back(row);
}

handoff scheduler_state::make_handoff(const sequence& s, std::uint32_t offset) const {
  check(offset < s.tokens.size(), "a handoff carries at least one token");
  handoff x;
  x.request = s.request;
  x.turn = s.sent_turn;
  x.from = config_.self;
  x.to = s.sent_to;
  x.offset = offset;
  x.tokens.assign(s.tokens.begin() + offset, s.tokens.end());
  x.tentative = s.tentative;
  x.kv_tokens = s.peer_kv_tokens;
  x.position_score = s.position_score;
  x.mix = s.sent_mix;
  x.spec = s.spec;
  x.state = s.state;
  return x;
}

void scheduler_state::forget(sequence& s, scheduler_effects& fx) {
  if (config_.keep_prefixes) {
    s.tokens.resize(std::min(s.kv_tokens, s.committed_tokens()));
    fx.remember.push_back({s.request, std::move(s.tokens)});
  }
  fx.give_back.push_back(s.request);
  fx.released_requests.push_back({s.request, config_.self, s.computed_tokens, s.cached_tokens,
                                  s.fetched_tokens, s.recomputed_tokens, s.kv_reached_tokens});
}

void scheduler_state::bury(request_id request) {
  if (!buried_.insert(request).second)
    return;
  tombstones_.push_back(request);
  if (tombstones_.size() > limits::tombstones_max) {
    buried_.erase(tombstones_.front());
    tombstones_.pop_front();
  }
}

} // namespace tokenrouter
