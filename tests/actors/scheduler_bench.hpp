#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "actors/kv_pool.hpp"
#include "actors/scheduler_state.hpp"

/// A scheduler_state with a ledger beside it and a role that decides what the test says.
namespace tokenrouter::test {

inline constexpr token_id eos = 99;

inline constexpr replica_id replica(std::uint16_t model) {
  return {{model}, 0};
}

/// What the role will answer, and what it was asked.
struct role_script {
  std::deque<route_decision> decisions; ///< when empty: stay, no score
  std::vector<route_input> asked;
  std::uint32_t accepts_tokens = 0;     ///< of a peer's tentative ones
  std::vector<token_id> shown;          ///< what `receive` was told of the model's own tokens
  std::uint32_t rolled_back_tokens = 0; ///< as `rollback` was told
  role_needs needs{to_set(signal::entropy), {}, 1, 1, false};
};

class scripted_role final : public method_role {
 public:
  explicit scripted_role(std::shared_ptr<role_script> script) : script_(std::move(script)) {}

  role_needs needs() const override { return script_->needs; }

  std::uint32_t receive(const receive_input& in, method_state&) const override {
    script_->shown.assign(in.own.begin(), in.own.end());
    return script_->accepts_tokens;
  }

  void rollback(std::uint32_t tokens, method_state&) const override {
    script_->rolled_back_tokens += tokens;
  }

  route_decision route(const route_input& in, method_state&) const override {
    script_->asked.push_back(in);
    if (script_->decisions.empty())
      return {};
    const auto decision = script_->decisions.front();
    script_->decisions.pop_front();
    return decision;
  }

 private:
  std::shared_ptr<role_script> script_;
};

struct bench_options {
  std::uint16_t model = 0;
  std::uint32_t blocks = 64;
  batch_limits limits{8, 512};
  bool trace = false;
  std::vector<batching_thresholds> thresholds{};
  std::uint64_t delay_timeout_us = 0;
  bool keep_prefixes = false;
  std::uint32_t fetch_min_tokens = 0;
  role_needs needs{to_set(signal::entropy), {}, 1, 1, false};
  bool resumable = false;
  std::uint32_t replicas = 1; ///< of its model
  bool drop_kv = false;
};

class scheduler_bench {
 public:
  explicit scheduler_bench(const bench_options& options = {})
      : script(std::make_shared<role_script>(role_script{{}, {}, 0, {}, 0, options.needs})),
        ledger(options.blocks, options.keep_prefixes),
        state(config_of(options), std::make_unique<scripted_role>(script)) {}

  /// The first handoff of a request: turn 1, the whole prompt.
  static handoff admission(request_id id, std::vector<token_id> prompt, replica_id to = {},
                           std::uint32_t max_new_tokens = 100) {
    handoff x;
    x.request = id;
    x.turn = 1;
    x.from = to;
    x.to = to;
    x.tokens = std::move(prompt);
    x.spec.prompt_tokens = static_cast<std::uint32_t>(x.tokens.size());
    x.spec.max_new_tokens = max_new_tokens;
    return x;
  }

  /// A handoff back from model 1 to model 0.
  static handoff comeback(request_id id, turn_number turn, std::uint32_t offset,
                          std::vector<token_id> tokens, std::vector<std::uint32_t> kv_tokens,
                          std::uint32_t prompt_tokens = 3) {
    handoff x;
    x.request = id;
    x.turn = turn;
    x.from = replica(1);
    x.to = replica(0);
    x.offset = offset;
    x.tokens = std::move(tokens);
    x.kv_tokens = std::move(kv_tokens);
    x.spec.prompt_tokens = prompt_tokens;
    x.spec.max_new_tokens = 100;
    return x;
  }

  void take(handoff x) { state.on_handoff(std::move(x), now_us, fx); }
  void release(request_id id) {
    state.on_release(id, fx);
    settle();
  }

  /// Plans, leases and commits; false: there is nothing to run.
  bool start() {
    lease_grant grant;
    return plan(grant) && state.commit_plan(grant, now_us, work.in);
  }

  bool plan(lease_grant& grant) {
    const auto lacking = state.plan(now_us);
    grant = {};
    asked = lacking ? *lacking : lease{};
    if (!asked.wants.empty())
      grant = grant_lease(ledger, asked);
    return lacking.has_value();
  }

  /// Answers the step under way: row i proposes tokens[i], unless it is a chunk in the middle.
  void finish(const std::vector<token_id>& tokens) {
    fx = {};
    work.out.rows.assign(work.in.rows.size(), {});
    for (std::size_t i = 0; i < work.in.rows.size(); ++i)
      if (work.in.rows[i].answered_positions)
        work.out.rows[i].token = tokens.at(i);
    state.on_step_done(work, now_us, fx);
    settle();
  }

  /// The same for one row that is answered at several positions.
  void finish_row(std::vector<token_id> tokens) {
    fx = {};
    work.out = {};
    work.out.rows.resize(1);
    work.out.rows[0].token = tokens.back();
    tokens.pop_back();
    for (token_id token : tokens)
      work.out.earlier.emplace_back().token = token;
    state.on_step_done(work, now_us, fx);
    settle();
  }

  /// One whole step of one row.
  void step(token_id token, route_decision decision = {}) {
    script->decisions.push_back(decision);
    check(start(), "the bench has a row to run");
    finish({token});
  }

  /// What the scheduler sends to its pool.
  void settle() {
    for (const auto& x : fx.remember)
      ledger.remember(x.request, x.tokens);
    for (const auto& one : fx.park)
      ledger.park(one.request, one.tokens);
    for (request_id id : fx.give_back)
      ledger.release(id);
  }

  /// All commits of the last transition, whatever their home.
  std::vector<commit> commits() const {
    std::vector<commit> all;
    for (const auto& [home, batch] : fx.commits)
      all.insert(all.end(), batch.commits.begin(), batch.commits.end());
    return all;
  }

  bool quiet() const {
    return fx.handoffs.empty() && fx.gaps.empty() && fx.commits.empty() && fx.failures.empty() &&
           fx.park.empty() && fx.give_back.empty() && fx.released_requests.empty() &&
           fx.trace.empty();
  }

  std::shared_ptr<role_script> script;
  block_ledger ledger;
  scheduler_state state;
  scheduler_effects fx; ///< of the last transition
  lease asked;          ///< of the pool, by the last plan
  step_work work;
  std::uint64_t now_us = 1000;

 private:
  static scheduler_config config_of(const bench_options& options) {
    scheduler_config config;
    config.self = replica(options.model);
    config.models = 3;
    config.limits = options.limits;
    config.eos_tokens = {eos};
    config.context_tokens_max = 256;
    config.thresholds = options.thresholds;
    config.delay_timeout_us = options.delay_timeout_us;
    config.keep_prefixes = options.keep_prefixes;
    config.fetch_min_tokens = options.fetch_min_tokens;
    config.trace = options.trace;
    config.resumable = options.resumable;
    config.replicas = options.replicas;
    config.drop_kv = options.drop_kv;
    return config;
  }
};

} // namespace tokenrouter::test
