#include "actors/scheduler_state.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/philox.hpp"
#include "runtime/policy/handoff.hpp"

namespace tokenrouter {

namespace {

std::uint32_t length(const std::vector<token_id>& tokens) {
  return static_cast<std::uint32_t>(tokens.size());
}

std::uint32_t elapsed_us(std::uint64_t from_us, std::uint64_t to_us) {
  return to_us > from_us ? static_cast<std::uint32_t>(to_us - from_us) : 0;
}

} // namespace

scheduler_state::scheduler_state(scheduler_config config, std::unique_ptr<const method_role> role)
    : config_(std::move(config)), role_(std::move(role)), needs_(role_->needs()) {}

void scheduler_state::on_handoff(handoff&& x, std::uint64_t now_us, scheduler_effects& fx) {
  if (buried_.count(x.request) != 0) {
    ++counters_.late_handoffs;
    return;
  }
  const auto found = sequences_.find(x.request);
  const handoff_local local = found == sequences_.end()
                                  ? handoff_local{}
                                  : handoff_local{found->second.turn, found->second.tokens};
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
  const std::uint32_t known = length(s.tokens);
  s.tokens.resize(x.offset);
  s.tokens.insert(s.tokens.end(), x.tokens.begin(), x.tokens.end());
  // A turn that comes back with nothing new: the last position runs again to propose.
  s.kv_tokens = std::min(s.kv_tokens, length(s.tokens) - 1);
  s.turn = x.turn;
  s.has_turn = true;
  s.ready_since_us = now_us;
  s.peer_kv_tokens = std::move(x.kv_tokens);
  s.peer_kv_tokens.resize(config_.models, 0);
  s.position_score = x.position_score;
  s.spec = x.spec;
  s.state = std::move(x.state);
  const std::uint32_t peer_tokens = length(s.tokens) - std::max(known, s.spec.prompt_tokens);
  if (peer_tokens > 0)
    check(role_->receive({length(s.tokens), peer_tokens}, s.state) == peer_tokens,
          "committed tokens of a peer are accepted whole");
  if (config_.trace)
    fx.trace.handoffs.push_back({now_us, s.request.value, s.turn, length(s.tokens), x.offset,
                                 length(x.tokens), x.from.model.value, config_.self.model.value,
                                 handoff_side::received, 0, s.position_score.value});
}

void scheduler_state::on_gap(const handoff_gap& x, std::uint64_t now_us, scheduler_effects& fx) {
  const auto found = sequences_.find(x.request);
  if (found == sequences_.end() || found->second.has_turn || found->second.sent_turn != x.turn ||
      found->second.sent_to != x.from) {
    ++counters_.stale_handoffs;
    return;
  }
  const auto& s = found->second;
  const std::uint32_t offset = std::min(x.have_tokens, length(s.tokens) - 1);
  fx.handoffs.push_back(make_handoff(s, s.sent_to, offset));
  if (config_.trace)
    fx.trace.handoffs.push_back({now_us, s.request.value, s.sent_turn, length(s.tokens), offset,
                                 length(s.tokens) - offset, config_.self.model.value,
                                 s.sent_to.model.value, handoff_side::sent, 0,
                                 s.position_score.value});
}

void scheduler_state::on_release(request_id request, scheduler_effects& fx) {
  bury(request);
  const auto found = sequences_.find(request);
  if (found == sequences_.end()) {
    fx.released_requests.push_back({request, config_.self, 0, 0, 0});
    return;
  }
  if (found->second.in_step) {
    found->second.doomed = true;
    return;
  }
  forget(found->second, fx);
  sequences_.erase(found);
}

std::vector<block_ledger::want> scheduler_state::plan(std::uint64_t now_us) {
  if (!running_.empty() || !planned_.empty())
    return {};
  std::vector<batch_candidate> candidates;
  std::vector<sequence*> waiting;
  for (auto& [id, s] : sequences_) {
    if (!s.has_turn || s.finished)
      continue;
    check(s.kv_tokens < s.tokens.size(), "a sequence with the turn has a token to run");
    candidates.push_back(
        {static_cast<std::uint32_t>(waiting.size()), length(s.tokens) - s.kv_tokens, s.age});
    waiting.push_back(&s);
  }
  if (candidates.empty())
    return {};
  plan_started_us_ = now_us;
  oldest_ready_us_ = now_us;
  std::vector<block_ledger::want> wants;
  for (const auto& row : plan_batch(candidates, config_.limits)) {
    auto& s = *waiting[row.index];
    planned_.push_back({s.request, row, length(s.tokens) - s.kv_tokens > 1});
    wants.push_back({s.request, s.kv_tokens + row.token_count, s.age});
    oldest_ready_us_ = std::min(oldest_ready_us_, s.ready_since_us);
  }
  return wants;
}

bool scheduler_state::commit_plan(const lease_grant& grant, std::uint64_t now_us, step_input& in) {
  check(grant.granted.size() == planned_.size(), "a grant answers every want of the plan");
  for (request_id gone : grant.evicted) {
    const auto found = sequences_.find(gone);
    if (found == sequences_.end())
      continue;
    found->second.kv_tokens = 0;
    ++counters_.evictions;
  }
  in.tokens.clear();
  in.block_tables.assign(grant.block_tables.begin(), grant.block_tables.end());
  in.rows.clear();
  std::uint32_t block_offset = 0;
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    const std::uint32_t blocks = grant.block_counts[i];
    const std::uint32_t row_blocks = block_offset;
    block_offset += blocks;
    const auto found = sequences_.find(planned_[i].request);
    if (grant.granted[i] == 0 || found == sequences_.end())
      continue;
    auto& s = found->second;
    const auto& plan = planned_[i].plan;
    step_row row;
    row.request = s.request;
    row.token_offset = length(in.tokens);
    row.token_count = plan.token_count;
    row.start_position = s.kv_tokens;
    row.block_offset = row_blocks;
    row.block_count = blocks;
    row.wants_token = plan.last;
    row.signals = plan.last ? needs_.signals : 0;
    row.sampling = s.spec.sampling;
    row.sample_stream = sample_stream(config_.self.model.value);
    in.tokens.insert(in.tokens.end(), s.tokens.begin() + s.kv_tokens,
                     s.tokens.begin() + s.kv_tokens + plan.token_count);
    in.rows.push_back(row);
    s.in_step = true;
    running_.push_back(planned_[i]);
  }
  planned_.clear();
  plan_done_us_ = now_us;
  return !running_.empty();
}

void scheduler_state::on_step_done(const step_work& work, std::uint64_t now_us,
                                   scheduler_effects& fx) {
  check(work.out.rows.size() == running_.size(), "a step answers every row");
  step_event event;
  event.time_us = now_us;
  event.rows = static_cast<std::uint32_t>(running_.size());
  event.wait_us = elapsed_us(oldest_ready_us_, plan_started_us_);
  event.plan_us = elapsed_us(plan_started_us_, plan_done_us_);
  event.turnaround_us = elapsed_us(work.sent_us, now_us);
  event.step_us = work.out.step_us;
  event.model = config_.self.model.value;
  const auto rows = std::move(running_);
  running_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& s = sequences_.at(rows[i].request);
    const std::uint32_t count = rows[i].plan.token_count;
    event.tokens += count;
    event.prefill_tokens += rows[i].prefill ? count : 0;
    event.proposing_rows += rows[i].plan.last ? 1 : 0;
    s.in_step = false;
    s.computed_tokens += count;
    if (s.kv_tokens < s.kv_computed_tokens)
      s.recomputed_tokens += std::min(count, s.kv_computed_tokens - s.kv_tokens);
    s.kv_tokens += count;
    s.kv_computed_tokens = std::max(s.kv_computed_tokens, s.kv_tokens);
    if (s.doomed) {
      forget(s, fx);
      sequences_.erase(rows[i].request);
    } else if (rows[i].plan.last) {
      route_row(s, work.out.rows[i], now_us, fx);
    }
  }
  if (config_.trace)
    fx.trace.steps.push_back(event);
}

void scheduler_state::stamp_route_time(scheduler_effects& fx, std::uint64_t now_us) {
  if (!fx.trace.steps.empty())
    fx.trace.steps.back().route_us = elapsed_us(fx.trace.steps.back().time_us, now_us);
}

void scheduler_state::route_row(sequence& s, const step_row_output& out, std::uint64_t now_us,
                                scheduler_effects& fx) {
  check(s.kv_tokens == s.tokens.size(), "a proposal follows the last committed token");
  route_input in;
  in.seed = s.spec.sampling.seed;
  in.position = length(s.tokens);
  in.prompt_tokens = s.spec.prompt_tokens;
  in.proposed = out.token;
  in.entropy_nats = out.entropy_nats;
  in.entropy_normalised = out.entropy_normalised;
  in.entropy_top20_nats = out.entropy_top20_nats;
  in.aleatoric = out.aleatoric;
  in.epistemic = out.epistemic;
  in.head_score = out.head_scores[0];
  const route_decision decision = role_->route(in, s.state);
  if (std::isnan(s.position_score.value))
    s.position_score.value = decision.score;
  if (decision.action != route_action::go_drop)
    commit_token(s, out.token, out.logprob, s.position_score.value, now_us, fx);
  s.ready_since_us = now_us;
  if (s.finished) {
    s.has_turn = false;
    fx.park.push_back(s.request);
  } else if (decision.action != route_action::stay) {
    hand_over(s, decision, now_us, fx);
  }
}

void scheduler_state::commit_token(sequence& s, token_id token, float logprob, float score,
                                   std::uint64_t now_us, scheduler_effects& fx) {
  const std::uint32_t position = length(s.tokens);
  s.tokens.push_back(token);
  s.position_score = {};
  const auto finish = check_finish(
      token, position + 1,
      {s.spec.prompt_tokens, s.spec.max_new_tokens, config_.context_tokens_max, s.spec.ignore_eos},
      config_.eos_tokens);
  s.finished = finish != finish_reason::none;
  const rank_id home = home_of(s.request);
  auto& batch = fx.commits[home];
  batch.home = home;
  batch.commits.push_back(
      {s.request, s.turn, position, token, config_.self.model, {score}, {logprob}, finish});
  if (config_.trace)
    fx.trace.tokens.push_back({now_us, s.request.value, position, token, s.turn, score, logprob,
                               config_.self.model.value, static_cast<std::uint16_t>(finish)});
}

void scheduler_state::hand_over(sequence& s, const route_decision& decision, std::uint64_t now_us,
                                scheduler_effects& fx) {
  check(decision.target.value < config_.models && decision.target != config_.self.model,
        "a handoff goes to another model of the job");
  const replica_id to{decision.target, 0};
  s.peer_kv_tokens[config_.self.model.value] = s.kv_tokens;
  const std::uint32_t offset =
      role_->send(s.peer_kv_tokens[decision.target.value], length(s.tokens));
  s.has_turn = false;
  s.sent_to = to;
  s.sent_turn = s.turn + 1;
  fx.handoffs.push_back(make_handoff(s, to, offset));
  fx.park.push_back(s.request);
  if (config_.trace)
    fx.trace.handoffs.push_back(
        {now_us, s.request.value, s.sent_turn, length(s.tokens), offset, length(s.tokens) - offset,
         config_.self.model.value, to.model.value, handoff_side::sent,
         static_cast<std::uint16_t>(decision.action == route_action::go_keep), decision.score});
}

handoff scheduler_state::make_handoff(const sequence& s, replica_id to,
                                      std::uint32_t offset) const {
  check(offset < s.tokens.size(), "a handoff carries at least one token");
  handoff x;
  x.request = s.request;
  x.turn = s.sent_turn;
  x.from = config_.self;
  x.to = to;
  x.offset = offset;
  x.tokens.assign(s.tokens.begin() + offset, s.tokens.end());
  x.kv_tokens = s.peer_kv_tokens;
  x.position_score = s.position_score;
  x.spec = s.spec;
  x.state = s.state;
  return x;
}

void scheduler_state::forget(const sequence& s, scheduler_effects& fx) {
  fx.give_back.push_back(s.request);
  fx.released_requests.push_back(
      {s.request, config_.self, s.computed_tokens, s.recomputed_tokens, s.kv_computed_tokens});
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
