#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/kv_local_messages.hpp"
#include "actors/local_messages.hpp"
#include "actors/sequence.hpp"
#include "actors/step_statistics.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/policy/batching.hpp"
#include "runtime/policy/delayed_batching.hpp"
#include "runtime/policy/fetch_cost.hpp"

namespace tokenrouter {

struct scheduler_config {
  replica_id self;
  std::uint32_t models = 1;   ///< in the job
  std::uint32_t replicas = 1; ///< of this model
  batch_limits limits;
  std::vector<batching_thresholds> thresholds; ///< of every model; empty: no delay anywhere
  std::uint64_t delay_timeout_us = 0;          ///< a delayed step starts after that; 0: never
  std::vector<token_id> eos_tokens;            ///< of all models of the job
  std::uint32_t context_tokens_max = 0;        ///< smallest of all models of the job
  bool keep_prefixes = false;                  ///< the pool has a prefix cache
  bool drop_kv = false;                        ///< KV is given up at a handoff, for comparison
  bool resumable = false;                      ///< tell homes where requests could be taken up
  std::uint32_t fetch_min_tokens = 0;          ///< worth fetching from a sibling; 0: nothing is
  bool measure = false;                        ///< report step times and moves to the planner
  bool trace = false;
};

/// What a transition wants sent. The behaviour empties it.
struct scheduler_effects {
  std::vector<handoff> handoffs;
  std::vector<handoff_gap> gaps;
  std::map<rank_id, commit_batch> commits;
  std::vector<request_failed> failures;
  std::vector<prefix_query> queries;
  std::vector<fetch_prefix> fetches;
  std::vector<remember_prefix> remember;
  std::vector<block_ledger::holding> park;
  std::vector<request_id> give_back;
  std::vector<released> released_requests;
  std::optional<replica_report> report;
  trace_batch trace;

  /// Empties all but what `scheduler` sends later: commits, releases, trace.
  void clear_sent() {
    handoffs.clear();
    gaps.clear();
    failures.clear();
    queries.clear();
    fetches.clear();
    remember.clear();
    park.clear();
    give_back.clear();
    report.reset();
  }
};

/// Counts since the start; each is a fault of a peer or a race that the protocol allows.
struct scheduler_counters {
  std::uint64_t stale_handoffs = 0; ///< of an older turn
  std::uint64_t late_handoffs = 0;  ///< for a request that was released
  std::uint64_t gaps_asked = 0;
  std::uint64_t recalls = 0;      ///< requests whose turns were voided here
  std::uint64_t dropped_rows = 0; ///< results of steps that no longer count
  std::uint64_t evictions = 0;
  std::uint64_t rolled_back_tokens = 0;
  std::uint64_t delay_timeouts = 0; ///< steps that started although too few waited
};

/// One replica's sequences: which wait for a step, run in it, or are parked while a peer has the
/// turn. Free of CAF, clocks and I/O: the behaviour calls a transition for each message and sends
/// what `scheduler_effects` holds afterwards.
class scheduler_state {
 public:
  /// The role outlives the state's owner.
  scheduler_state(scheduler_config config, std::unique_ptr<const method_role> role);

  void on_announce(request_id request);
  void on_handoff(handoff&& x, std::uint64_t now_us, scheduler_effects& fx);
  void on_gap(const handoff_gap& x, std::uint64_t now_us, scheduler_effects& fx);
  void on_release(request_id request, scheduler_effects& fx);
  void on_recall(const recall& x, scheduler_effects& fx);
  void on_replicas_lost(std::span<const replica_id> lost, scheduler_effects& fx);
  void on_prefix(const prefix_hit& x, scheduler_effects& fx);
  void on_fetched(const prefix_fetched& x, scheduler_effects& fx);
  void set_thresholds(std::vector<batching_thresholds> thresholds);

  /// Plans the next step; nothing if one is under way, nothing waits, or too little waits for a
  /// step to be worth it (`delayed_until_us`). The blocks it lacks; without wants, its requests
  /// hold all it needs and `commit_plan` may follow with an empty grant.
  std::optional<lease> plan(std::uint64_t now_us);

  /// After a plan that came out empty: when it must be tried again, whatever happens.
  std::optional<std::uint64_t> delayed_until_us() const { return delayed_until_us_; }

  /// Turns the plan into the input of a step, rows without blocks left out. False: no row is left.
  bool commit_plan(const lease_grant& grant, std::uint64_t now_us, step_input& in);

  void on_step_done(const step_work& work, std::uint64_t now_us, scheduler_effects& fx);

  /// Sets the time from results to decisions in the step event just recorded.
  static void stamp_route_time(scheduler_effects& fx, std::uint64_t now_us);

  /// Requests known here that are not over: the rank has work in flight while there are any.
  std::size_t live_requests() const { return sequences_.size(); }
  /// Requests whose KV a sibling is asked for; each ends by an `on_fetched`.
  std::size_t fetches() const { return fetches_; }
  const scheduler_counters& counters() const { return counters_; }

 private:
  struct running_row {
    request_id request;
    planned_row plan;
    turn_number turn = 0;       ///< for which it was planned: no other one's results count
    std::uint32_t answered = 0; ///< positions, once in the step
    bool prefill = false;
    bool asked = false; ///< its blocks are in the lease
  };

  struct waiting {
    std::vector<batch_candidate> candidates;
    std::vector<sequence*> sequences;
    std::uint64_t oldest_ready_us = 0;
  };

  waiting list_waiting(std::uint64_t now_us);
  bool must_wait(const waiting& w, std::uint64_t now_us);
  lease lease_for(const waiting& w, std::span<const planned_row> rows);
  void take_grant(const lease_grant& grant);
  void append_row(const sequence& s, const planned_row& plan, step_input& in) const;

  // scheduler_results.cpp: from a step's results to commits and handoffs.
  struct row_result {
    sequence& s;
    const step_output& out;
    std::uint64_t now_us;
    scheduler_effects& fx;
  };
  void take_answers(sequence& s, const step_output& out, std::size_t row, std::uint32_t answered,
                    std::size_t& next_earlier) const;
  std::size_t judge_tentative(const row_result& r);
  void settle(const row_result& r);
  void tell_prompt(const row_result& r) const;
  void act(const row_result& r, const route_decision& decision, const step_row_output& proposal);
  route_input input_of(const sequence& s, const step_row_output& proposal) const;
  void append_tentative(sequence& s, token_id token, float logprob, float score,
                        std::vector<token_score> top = {}) const;
  void commit_tentative(const row_result& r, std::size_t count, model_id next);
  void note_resume(const row_result& r, model_id next) const;
  void hand_over(const row_result& r, const route_decision& decision,
                 const step_row_output& proposal);
  void park(const row_result& r);
  void fail_role(const row_result& r, const char* what);
  handoff make_handoff(const sequence& s, std::uint32_t offset) const;
  // scheduler_recall.cpp: what the loss of replicas voids.
  void void_turns(sequence& s, turn_number first, scheduler_effects& fx);
  void drop_row(sequence& s, scheduler_effects& fx);

  void end_doomed(sequence& s, scheduler_effects& fx);
  void forget(sequence& s, scheduler_effects& fx);
  void bury(request_id request);
  void query_prefix(sequence& s, scheduler_effects& fx) const;
  finish_reason finish_at(const sequence& s, token_id token, std::uint32_t committed_tokens) const;

  scheduler_config config_;
  std::unique_ptr<const method_role> role_;
  role_needs needs_;
  std::unordered_map<request_id, sequence> sequences_;
  std::unordered_set<request_id> announced_; ///< live in the whole job
  std::vector<running_row> planned_;         ///< between plan and commit_plan
  std::vector<running_row> running_;         ///< in the step under way
  std::uint64_t plan_started_us_ = 0;
  std::uint64_t plan_done_us_ = 0;
  std::uint64_t oldest_ready_us_ = 0;
  std::optional<std::uint64_t> delayed_until_us_;
  std::uint64_t next_age_ = 1;
  bool retired_ = false;    ///< this replica has lost a shard
  std::size_t fetches_ = 0; ///< under way
  token_cost prefill_cost_; ///< of steps that mostly run prompts
  std::deque<request_id> tombstones_;
  std::unordered_set<request_id> buried_;
  step_statistics statistics_;
  scheduler_counters counters_;
};

} // namespace tokenrouter
