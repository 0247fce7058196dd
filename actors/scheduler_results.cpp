#include <algorithm>
#include <cmath>

#include "actors/scheduler_state.hpp"
#include "runtime/core/check.hpp"
#include "runtime/methods/stay_instead.hpp"
#include "runtime/policy/lost_models.hpp"

namespace tokenrouter {

namespace {

/// Steps with so many tokens of prompts tell what a prefill takes.
constexpr std::uint32_t prefill_tokens_told = 64;

std::uint32_t elapsed_us(std::uint64_t from_us, std::uint64_t to_us) {
  return to_us > from_us ? static_cast<std::uint32_t>(to_us - from_us) : 0;
}

} // namespace

void scheduler_state::on_step_done(const step_work& work, std::uint64_t now_us,
                                   scheduler_effects& fx) {
  if (retired_)
    return;
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
  std::size_t next_earlier = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& s = sequences_.at(rows[i].request);
    const std::uint32_t count = rows[i].plan.token_count;
    event.tokens += count;
    event.prefill_tokens += rows[i].prefill ? count : 0;
    event.proposing_rows += rows[i].plan.last ? 1 : 0;
    s.in_step = false;
    if (s.turn != rows[i].turn) {
      next_earlier += std::max(rows[i].answered, 1u) - 1;
      drop_row(s, fx);
      continue;
    }
    take_answers(s, work.out, i, rows[i].answered, next_earlier);
    s.advance(count, false);
    if (s.doomed) {
      end_doomed(s, fx);
    } else if (rows[i].plan.last) {
      settle({s, work.out, now_us, fx});
    }
  }
  if (event.prefill_tokens >= prefill_tokens_told)
    prefill_cost_.note(event.step_us, event.tokens);
  if (config_.measure) {
    statistics_.note_step(event.rows, event.tokens, event.turnaround_us);
    fx.report = statistics_.take_report(static_cast<std::uint32_t>(announced_.size()));
  }
  if (config_.trace)
    fx.trace.steps.push_back(event);
}

void scheduler_state::stamp_route_time(scheduler_effects& fx, std::uint64_t now_us) {
  if (!fx.trace.steps.empty())
    fx.trace.steps.back().route_us = elapsed_us(fx.trace.steps.back().time_us, now_us);
}

void scheduler_state::take_answers(sequence& s, const step_output& out, std::size_t row,
                                   std::uint32_t answered, std::size_t& next_earlier) const {
  if (answered == 0)
    return;
  for (std::uint32_t i = 1; i < answered; ++i)
    s.answers.push_back(out.earlier.at(next_earlier++));
  s.answers.push_back(out.rows[row]);
  s.take_scores(out, answered);
  if (needs_.tail_positions <= 1)
    return;
  for (auto it = s.answers.end() - answered; it != s.answers.end(); ++it)
    s.tail_entropies.push_back(it->entropy_normalised);
  if (s.tail_entropies.size() > needs_.tail_positions)
    s.tail_entropies.erase(s.tail_entropies.begin(),
                           s.tail_entropies.end() - needs_.tail_positions);
}

/// All that was asked is answered: judges a peer's tentative tokens, then routes the proposal.
void scheduler_state::settle(const row_result& r) {
  sequence& s = r.s;
  check(s.has_turn, "only who has the turn makes a token");
  check(s.kv_tokens == s.tokens.size() && !s.answers.empty(), "a proposal follows the last token");
  if (config_.keep_prefixes && !s.remembered) {
    s.remembered = true;
    const auto prompt = s.tokens.begin() + s.spec.prompt_tokens;
    r.fx.remember.push_back({s.request, {s.tokens.begin(), prompt}});
    s.blocks.share(s.spec.prompt_tokens);
  }
  const std::uint32_t committed_before = s.committed_tokens();
  if (s.scoring)
    tell_prompt(r);
  const std::size_t proposed = judge_tentative(r);
  const step_row_output proposal = s.answers[proposed];
  s.proposed_top = s.likeliest.empty() ? std::vector<token_score>{} : s.likeliest[proposed];
  if (!s.finished) {
    route_decision decision =
        s.spec.pinned ? route_decision{} : role_->route(input_of(s, proposal), s.state);
    if (goes(decision) && is_out(s.spec.replicas, decision.target))
      decision = stay_instead(decision);
    act(r, decision, proposal);
  }
  if (config_.measure)
    statistics_.note_move(s.has_turn ? config_.self.model : s.sent_to.model,
                          s.committed_tokens() - committed_before);
  s.mix = {};
  s.ready_since_us = r.now_us;
  if (s.finished) {
    s.has_turn = false;
    park(r);
  } else if (s.has_turn) {
    s.prepare(needs_);
  }
}

void scheduler_state::tell_prompt(const row_result& r) const {
  sequence& s = r.s;
  const rank_id home = home_of(s.request);
  auto& batch = r.fx.commits[home];
  batch.home = home;
  batch.prompts.push_back({s.request, std::move(s.prompt_scores)});
  s.scoring = false;
  s.scored = true;
}

/// Commits what `receive` accepts and takes the rest back. Returns the answer that is the proposal
/// now: an index into s.answers.
std::size_t scheduler_state::judge_tentative(const row_result& r) {
  sequence& s = r.s;
  if (!s.judging)
    return s.answers.size() - 1;
  s.judging = false;
  const std::size_t count = s.tentative.size();
  const std::uint32_t first = s.committed_tokens() - 1 - s.answer_from;
  std::vector<token_id> own;
  for (std::size_t i = 0; i <= count; ++i)
    own.push_back(s.answers[first + i].token);
  const std::uint32_t accepted = role_->receive(
      {s.committed_tokens(), std::span(s.tokens).subspan(s.committed_tokens()), own}, s.state);
  if (accepted > count) {
    fail_role(r, "accepted more tokens than there were");
    return s.answers.size() - 1;
  }
  for (std::size_t i = 0; i < accepted; ++i)
    if (own[i] == s.tokens[s.committed_tokens() + i]) {
      s.tentative[i].logprob.value = s.answers[first + i].logprob;
      if (!s.likeliest.empty())
        s.tentative[i].top = s.likeliest[first + i];
    }
  if (accepted < count) {
    const std::uint32_t dropped = s.drop_tentative(accepted);
    counters_.rolled_back_tokens += dropped;
    role_->rollback(dropped, s.state);
  }
  commit_tentative(r, accepted, config_.self.model);
  return first + accepted;
}

route_input scheduler_state::input_of(const sequence& s, const step_row_output& proposal) const {
  route_input in;
  in.seed = s.spec.sampling.seed;
  in.position = s.length();
  in.prompt_tokens = s.spec.prompt_tokens;
  in.tentative_tokens = static_cast<std::uint32_t>(s.tentative.size());
  in.proposed = proposal.token;
  in.would_finish = finish_at(s, proposal.token, s.length() + 1) != finish_reason::none;
  in.request_score = s.spec.request_score.value;
  in.threshold = s.spec.own_threshold();
  in.entropy_nats = proposal.entropy_nats;
  in.entropy_normalised = proposal.entropy_normalised;
  in.entropy_top20_nats = proposal.entropy_top20_nats;
  in.aleatoric = proposal.aleatoric;
  in.epistemic = proposal.epistemic;
  in.head_score = proposal.head_scores[0];
  in.tail_entropies = s.tail_entropies;
  return in;
}

finish_reason scheduler_state::finish_at(const sequence& s, token_id token,
                                         std::uint32_t committed_tokens) const {
  return check_finish(
      token, committed_tokens,
      {s.spec.prompt_tokens, s.spec.max_new_tokens, config_.context_tokens_max, s.spec.ignore_eos},
      config_.eos_tokens);
}

void scheduler_state::act(const row_result& r, const route_decision& decision,
                          const step_row_output& proposal) {
  sequence& s = r.s;
  const bool leaves = goes(decision);
  if (leaves &&
      (decision.target.value >= config_.models || decision.target == config_.self.model)) {
    fail_role(r, "sent a request to a model that is not another one of the job");
    return;
  }
  if (std::isnan(s.position_score.value))
    s.position_score.value = decision.score;
  const float score = s.position_score.value;
  switch (decision.action) {
  case route_action::stay:
  case route_action::go_keep:
    if (decision.forced.empty())
      append_tentative(s, proposal.token, proposal.logprob, score, std::move(s.proposed_top));
    for (const token_id token : decision.forced)
      append_tentative(s, token, 0, score);
    commit_tentative(r, s.tentative.size(), leaves ? decision.target : config_.self.model);
    break;
  case route_action::stay_tentative:
  case route_action::go_tentative:
    if (!leaves && finish_at(s, proposal.token, s.length() + 1) != finish_reason::none) {
      fail_role(r, "kept a token tentative that would finish the request");
      return;
    }
    append_tentative(s, proposal.token, proposal.logprob, score, std::move(s.proposed_top));
    s.position_score = {};
    break;
  case route_action::go_drop:
    break;
  }
  if (leaves && !s.finished)
    hand_over(r, decision, proposal);
}

void scheduler_state::append_tentative(sequence& s, token_id token, float logprob, float score,
                                       std::vector<token_score> top) const {
  s.tokens.push_back(token);
  s.tentative.push_back({config_.self.model, {logprob}, {score}, std::move(top)});
}

/// Commits the first `count` tentative tokens; after one that finishes the request the rest goes.
/// `next` makes the token after them.
void scheduler_state::commit_tentative(const row_result& r, std::size_t count, model_id next) {
  sequence& s = r.s;
  const rank_id home = home_of(s.request);
  std::size_t done = 0;
  const std::uint32_t first = s.committed_tokens();
  while (done < count && !s.finished) {
    const auto& x = s.tentative[done];
    const auto position = first + static_cast<std::uint32_t>(done++);
    const token_id token = s.tokens[position];
    const auto finish = finish_at(s, token, position + 1);
    s.finished = finish != finish_reason::none;
    auto& batch = r.fx.commits[home];
    batch.home = home;
    batch.commits.push_back(
        {s.request, s.turn, position, token, x.maker, x.score, x.logprob, finish, x.top});
    if (config_.trace)
      r.fx.trace.tokens.push_back({r.now_us, s.request.value, position, token, s.turn,
                                   x.score.value, x.logprob.value, x.maker.value,
                                   static_cast<std::uint16_t>(finish)});
  }
  if (done == 0)
    return;
  s.position_score = {};
  s.tentative.erase(s.tentative.begin(), s.tentative.begin() + static_cast<std::ptrdiff_t>(done));
  if (s.finished)
    s.drop_tentative(0);
  else if (config_.resumable)
    note_resume(r, next);
}

/// Nothing is tentative now: with the method's state the home could have the rest made again.
void scheduler_state::note_resume(const row_result& r, model_id next) const {
  const sequence& s = r.s;
  auto& resumes = r.fx.commits[home_of(s.request)].resumes;
  if (!resumes.empty() && resumes.back().request == s.request)
    resumes.pop_back();
  resumes.push_back({s.request, s.turn, s.committed_tokens(), next, s.state});
}

void scheduler_state::hand_over(const row_result& r, const route_decision& decision,
                                const step_row_output& proposal) {
  sequence& s = r.s;
  const std::uint16_t target = decision.target.value;
  s.sent_to = {decision.target,
               target < s.spec.replicas.size() ? s.spec.replicas[target] : std::uint16_t{0}};
  s.sent_turn = s.turn + 1;
  s.sent_mix = {};
  if (decision.action == route_action::go_drop && decision.mix_weight > 0) {
    const std::size_t width = r.out.distributions.size();
    check(proposal.distribution_offset < width, "a mix needs signal::distribution");
    s.sent_mix.weight.value = decision.mix_weight;
    const auto from = r.out.distributions.begin() + proposal.distribution_offset;
    for (std::uint32_t i = 0; i < r.out.distribution_tokens; ++i)
      s.sent_mix.distribution.push_back({from[i]});
  }
  s.peer_kv_tokens[config_.self.model.value] = s.kv_tokens;
  const std::uint32_t offset =
      std::min(role_->send(s.peer_kv_tokens[target], s.length()), s.committed_tokens());
  s.has_turn = false;
  r.fx.handoffs.push_back(make_handoff(s, std::min(offset, s.length() - 1)));
  park(r);
  if (config_.trace)
    r.fx.trace.handoffs.push_back(
        {r.now_us, s.request.value, s.sent_turn, s.length(), offset, s.length() - offset,
         config_.self.model.value, target, handoff_side::sent,
         static_cast<std::uint16_t>(decision.action == route_action::go_keep), decision.score});
}

/// The pool may take its blocks from now on; what it does not need is given back at once.
void scheduler_state::park(const row_result& r) {
  if (config_.drop_kv)
    r.s.cut_kv(0);
  r.fx.park.push_back({r.s.request, r.s.kv_tokens});
  r.s.blocks.clear();
}

/// The method broke its contract: the request ends, the rank does not.
void scheduler_state::fail_role(const row_result& r, const char* what) {
  r.s.finished = true;
  r.fx.failures.push_back({r.s.request, errc::internal,
                           std::string("the routing method ") + what + " (model " +
                               std::to_string(config_.self.model.value) + ", position " +
                               std::to_string(r.s.length()) + ")"});
}

} // namespace tokenrouter
