#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/local_messages.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/policy/batching.hpp"

namespace tokenrouter {

struct scheduler_config {
  replica_id self;
  std::uint32_t models = 1; ///< in the job
  batch_limits limits;
  std::vector<token_id> eos_tokens;     ///< of all models of the job
  std::uint32_t context_tokens_max = 0; ///< smallest of all models of the job
  bool trace = false;
};

/// What a transition wants sent. The behaviour empties it.
struct scheduler_effects {
  std::vector<handoff> handoffs;
  std::vector<handoff_gap> gaps;
  std::map<rank_id, commit_batch> commits;
  std::vector<request_failed> failures;
  std::vector<request_id> park;
  std::vector<request_id> give_back;
  std::vector<released> released_requests;
  trace_batch trace;
};

/// Counts since the start; each is a fault of a peer or a race that the protocol allows.
struct scheduler_counters {
  std::uint64_t stale_handoffs = 0; ///< of an older turn
  std::uint64_t late_handoffs = 0;  ///< for a request that was released
  std::uint64_t gaps_asked = 0;
  std::uint64_t evictions = 0;
};

/// One replica's sequences: which wait for a step, run in it, or are parked while a peer has the
/// turn. Free of CAF, clocks and I/O: the behaviour calls a transition for each message and sends
/// what `scheduler_effects` holds afterwards.
class scheduler_state {
 public:
  /// The role outlives the state's owner.
  scheduler_state(scheduler_config config, std::unique_ptr<const method_role> role);

  void on_handoff(handoff&& x, std::uint64_t now_us, scheduler_effects& fx);
  void on_gap(const handoff_gap& x, std::uint64_t now_us, scheduler_effects& fx);
  void on_release(request_id request, scheduler_effects& fx);

  /// Plans the next step; nothing if one is under way or nothing waits. The blocks it needs:
  std::vector<block_ledger::want> plan(std::uint64_t now_us);

  /// Turns the plan into the input of a step, rows without blocks left out. False: no row is left.
  bool commit_plan(const lease_grant& grant, std::uint64_t now_us, step_input& in);

  void on_step_done(const step_work& work, std::uint64_t now_us, scheduler_effects& fx);

  /// Sets the time from results to decisions in the step event just recorded.
  static void stamp_route_time(scheduler_effects& fx, std::uint64_t now_us);

  /// Requests known here that are not over: the rank has work in flight while there are any.
  std::size_t live_requests() const { return sequences_.size(); }
  const scheduler_counters& counters() const { return counters_; }

 private:
  struct sequence {
    request_id request;
    turn_number turn = 0; ///< newest seen
    bool has_turn = false;
    bool in_step = false;
    bool doomed = false;   ///< released while in a step
    bool finished = false; ///< its last token was committed here
    std::uint64_t age = 0;
    std::uint64_t ready_since_us = 0;
    std::vector<token_id> tokens;              ///< prompt and output as known here
    std::uint32_t kv_tokens = 0;               ///< leading tokens whose KV is here
    std::uint32_t kv_computed_tokens = 0;      ///< the most kv_tokens ever was
    std::vector<std::uint32_t> peer_kv_tokens; ///< for each model, as last heard
    exact_float position_score;                ///< carried from earlier stages of this position
    request_spec spec;
    method_state state;
    std::uint64_t computed_tokens = 0;
    std::uint64_t recomputed_tokens = 0;
    replica_id sent_to;        ///< of the handoff that gave the turn away
    turn_number sent_turn = 0; ///< 0: none
  };

  struct running_row {
    request_id request;
    planned_row plan;
    bool prefill = false;
  };

  void commit_token(sequence& s, token_id token, float logprob, float score, std::uint64_t now_us,
                    scheduler_effects& fx);
  void hand_over(sequence& s, const route_decision& decision, std::uint64_t now_us,
                 scheduler_effects& fx);
  handoff make_handoff(const sequence& s, replica_id to, std::uint32_t offset) const;
  void route_row(sequence& s, const step_row_output& out, std::uint64_t now_us,
                 scheduler_effects& fx);
  void forget(const sequence& s, scheduler_effects& fx);
  void bury(request_id request);

  scheduler_config config_;
  std::unique_ptr<const method_role> role_;
  role_needs needs_;
  std::unordered_map<request_id, sequence> sequences_;
  std::vector<running_row> planned_; ///< between plan and commit_plan
  std::vector<running_row> running_; ///< in the step under way
  std::uint64_t plan_started_us_ = 0;
  std::uint64_t plan_done_us_ = 0;
  std::uint64_t oldest_ready_us_ = 0;
  std::uint64_t next_age_ = 1;
  std::deque<request_id> tombstones_;
  std::unordered_set<request_id> buried_;
  scheduler_counters counters_;
};

} // namespace tokenrouter
