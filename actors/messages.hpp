#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/job_messages.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/exact_float.hpp"
#include "runtime/exec/sampling.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/policy/delayed_batching.hpp"
#include "runtime/policy/finish.hpp"

/// The protocol between ranks, in the order a request meets it. Messages carry ids, never handles:
/// the struct that passes between two actors of one rank is the one that crosses ranks. What each
/// means, and who answers for what, is in actors/README.md. `valid` says what a sender promises; it
/// is checked before encoding and after decoding.
namespace tokenrouter {

/// What stays the same over a request's life. Travels with every handoff, so that a replica needs
/// no memory of the first send.
struct request_spec {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_new_tokens = 0;
  bool ignore_eos = false;
  sampling_params sampling;
  std::uint32_t top_logprobs = 0;      ///< likeliest tokens to tell of each position
  bool prompt_logprobs = false;        ///< tell how likely the prompt's tokens are, too
  bool pinned = false;                 ///< no routing: where it starts, all of it is written
  exact_float request_score;           ///< the client's routing score; NaN: none
  double threshold = -1;               ///< the client's own for the method; below 0: the job's
  std::vector<std::uint16_t> replicas; ///< for each model: index of the replica that serves it

  std::optional<double> own_threshold() const {
    return threshold < 0 ? std::nullopt : std::optional(threshold);
  }

  template <class Inspector>
  friend auto inspect(Inspector& f, request_spec& x) {
    return f(x.prompt_tokens, x.max_new_tokens, x.ignore_eos, x.sampling, x.top_logprobs,
             x.prompt_logprobs, x.pinned, x.request_score, x.threshold, x.replicas);
  }
};

/// request → every scheduler, once, before its first handoff: one more request lives.
struct announce {
  request_id request;
  replica_id to;

  template <class Inspector>
  friend auto inspect(Inspector& f, announce& x) {
    return f(x.request, x.to);
  }
};

/// A token and its log-probability at some position.
struct token_score {
  token_id token = -1;
  exact_float logprob;

  template <class Inspector>
  friend auto inspect(Inspector& f, token_score& x) {
    return f(x.token, x.logprob);
  }
};

/// A token of the prompt, as the model that the request starts on sees it.
struct scored_token_info {
  token_id token = -1;
  exact_float logprob; ///< NaN: nothing comes before it
  std::vector<token_score> top{};

  template <class Inspector>
  friend auto inspect(Inspector& f, scored_token_info& x) {
    return f(x.token, x.logprob, x.top);
  }
};

/// All tokens of a request's prompt.
struct prompt_scores {
  request_id request;
  std::vector<scored_token_info> tokens;

  template <class Inspector>
  friend auto inspect(Inspector& f, prompt_scores& x) {
    return f(x.request, x.tokens);
  }
};

/// A token that is not committed yet, beside its place in handoff::tokens.
struct tentative_token {
  model_id maker;
  exact_float logprob;
  exact_float score;              ///< of the first routing decision at its position; NaN: none
  std::vector<token_score> top{}; ///< likeliest there, if asked for

  template <class Inspector>
  friend auto inspect(Inspector& f, tentative_token& x) {
    return f(x.maker, x.logprob, x.score, x.top);
  }
};

/// One model's distribution over the next token, for the receiver to mix with its own.
struct token_mix {
  exact_float weight{0.0f}; ///< of the receiver's own; 0: nothing to mix
  std::vector<exact_float> distribution;

  template <class Inspector>
  friend auto inspect(Inspector& f, token_mix& x) {
    return f(x.weight, x.distribution);
  }
};

/// request → scheduler (admission: turn 1, from = to, the whole prompt), scheduler → scheduler.
/// Passes the turn.
struct handoff {
  request_id request;
  turn_number turn = 0;
  replica_id from;
  replica_id to;
  std::uint32_t offset = 0;               ///< position of tokens[0]
  std::vector<token_id> tokens;           ///< from `offset` to the end
  std::vector<tentative_token> tentative; ///< of the last of `tokens`; the others are committed
  std::vector<std::uint32_t> kv_tokens;   ///< for each model: leading tokens whose KV it holds
  exact_float position_score;             ///< score of the first decision at the next position; NaN
  token_mix mix;
  request_spec spec;
  method_state state;

  template <class Inspector>
  friend auto inspect(Inspector& f, handoff& x) {
    return f(x.request, x.turn, x.from, x.to, x.offset, x.tokens, x.tentative, x.kv_tokens,
             x.position_score, x.mix, x.spec, x.state);
  }
};

/// scheduler → scheduler, back to the sender of `turn`: it starts beyond what is known here.
struct handoff_gap {
  request_id request;
  turn_number turn = 0;
  replica_id from;               ///< who asks
  replica_id to;                 ///< who sent the handoff
  std::uint32_t have_tokens = 0; ///< leading tokens known to `from`

  template <class Inspector>
  friend auto inspect(Inspector& f, handoff_gap& x) {
    return f(x.request, x.turn, x.from, x.to, x.have_tokens);
  }
};

/// One committed token.
struct commit {
  request_id request;
  turn_number turn = 0;
  std::uint32_t position = 0; ///< in prompt + output
  token_id token = -1;
  model_id model;
  exact_float score; ///< of the first routing decision at this position; NaN: none
  exact_float logprob;
  finish_reason finish = finish_reason::none;
  std::vector<token_score> top{}; ///< likeliest there, if asked for

  template <class Inspector>
  friend auto inspect(Inspector& f, commit& x) {
    return f(x.request, x.turn, x.position, x.token, x.model, x.score, x.logprob, x.finish, x.top);
  }
};

/// Where a request could be taken up again after its first `position` tokens, all committed.
struct resume_point {
  request_id request;
  turn_number turn = 0;
  std::uint32_t position = 0;
  model_id next; ///< makes the token there
  method_state state;

  template <class Inspector>
  friend auto inspect(Inspector& f, resume_point& x) {
    return f(x.request, x.turn, x.position, x.next, x.state);
  }
};

/// scheduler → gateway of the home rank: all tokens of one step for requests of that rank.
struct commit_batch {
  rank_id home;
  std::vector<commit> commits;
  std::vector<prompt_scores> prompts{}; ///< of requests that asked, once
  std::vector<resume_point> resumes{};  ///< of each request in `commits`, where ranks may be lost

  template <class Inspector>
  friend auto inspect(Inspector& f, commit_batch& x) {
    return f(x.home, x.commits, x.prompts, x.resumes);
  }
};

/// scheduler → gateway of the home rank: the request cannot go on.
struct request_failed {
  request_id request;
  errc code = errc::internal;
  std::string message;

  template <class Inspector>
  friend auto inspect(Inspector& f, request_failed& x) {
    return f(x.request, x.code, x.message);
  }
};

/// request → every scheduler, after the loss of a replica: turns before `turn` are void.
struct recall {
  request_id request;
  turn_number turn = 0;
  replica_id to;

  template <class Inspector>
  friend auto inspect(Inspector& f, recall& x) {
    return f(x.request, x.turn, x.to);
  }
};

/// request → every scheduler: the request is over; give back all it holds, forget it.
struct release {
  request_id request;
  replica_id to;

  template <class Inspector>
  friend auto inspect(Inspector& f, release& x) {
    return f(x.request, x.to);
  }
};

/// scheduler → gateway of the home rank: answers `release`, once nothing is held any more.
struct released {
  request_id request;
  replica_id from;
  std::uint64_t computed_tokens = 0;   ///< positions this replica ran for the request
  std::uint64_t cached_tokens = 0;     ///< positions taken from the prefix cache instead
  std::uint64_t fetched_tokens = 0;    ///< of these: positions taken from a sibling's
  std::uint64_t recomputed_tokens = 0; ///< of both: a second time, after eviction or rollback
  std::uint32_t kv_tokens = 0;         ///< the most leading positions whose KV it held

  template <class Inspector>
  friend auto inspect(Inspector& f, released& x) {
    return f(x.request, x.from, x.computed_tokens, x.cached_tokens, x.fetched_tokens,
             x.recomputed_tokens, x.kv_tokens);
  }
};

/// Steps with the same number of rows.
struct step_bucket {
  std::uint64_t count = 0;
  std::uint64_t total_us = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, step_bucket& x) {
    return f(x.count, x.total_us);
  }
};

/// scheduler → planner: what it measured since its last report.
struct replica_report {
  replica_id from;
  std::vector<step_bucket> steps;              ///< [rows − 1]
  std::vector<std::uint64_t> moves;            ///< for each model: requests that went there next
  std::vector<std::uint64_t> committed_tokens; ///< … and tokens that became final with that
  std::uint32_t live_requests_max = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, replica_report& x) {
    return f(x.from, x.steps, x.moves, x.committed_tokens, x.live_requests_max);
  }
};

/// planner → every scheduler: batching thresholds of every model, from now on.
struct batching_update {
  replica_id to;
  std::vector<batching_thresholds> thresholds;

  template <class Inspector>
  friend auto inspect(Inspector& f, batching_update& x) {
    return f(x.to, x.thresholds);
  }
};

bool valid(const announce& x);
bool valid(const handoff& x);
bool valid(const handoff_gap& x);
bool valid(const commit_batch& x);
bool valid(const request_failed& x);
bool valid(const recall& x);
bool valid(const release& x);
bool valid(const released& x);
bool valid(const replica_report& x);
bool valid(const batching_update& x);

} // namespace tokenrouter
