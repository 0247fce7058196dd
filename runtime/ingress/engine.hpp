#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/exec/sampling.hpp"
#include "runtime/policy/finish.hpp"

/// What ingress needs of the job behind it: plain values, no actor and no device in sight.
namespace tokenrouter {

/// One continuation that a client wants.
struct generation_order {
  std::vector<token_id> prompt;
  std::uint32_t max_new_tokens = 16;
  bool ignore_eos = false;
  sampling_params sampling;
  std::vector<std::string> stop;      ///< the text ends before the first of them; none is empty
  std::optional<model_id> only_model; ///< writes all of it; none: the method routes
  std::uint32_t top_logprobs = 0;     ///< likeliest tokens to tell of each position
  bool prompt_logprobs = false;       ///< tell those of the prompt's tokens too
  float request_score = std::numeric_limits<float>::quiet_NaN(); ///< for query-level routing
  std::optional<double> threshold; ///< of the routing method; none: the job's
};

struct token_logprob {
  token_id token = -1;
  float logprob = 0;
};

struct generated_token {
  token_id token = -1;
  model_id model;
  float logprob = 0;              ///< of that model, temperature 1; NaN: not known
  float score = 0;                ///< of the first routing decision at this position; NaN: none
  std::vector<token_logprob> top; ///< likeliest first, as many as were asked for
};

/// Tokens that were committed, in order, and the text that is complete with them: it may lag behind
/// by part of a character, or by what may become a stop string.
struct generation_delta {
  std::vector<generated_token> prompt_tokens; ///< the prompt's, once, if they were asked for
  std::vector<generated_token> tokens;
  std::string text;
};

struct model_work {
  std::uint32_t generated_tokens = 0;
  std::uint64_t computed_tokens = 0;
  std::uint64_t cached_tokens = 0;  ///< taken from the prefix cache instead
  std::uint64_t fetched_tokens = 0; ///< of these: from another replica's
};

/// The end of a generation, after all of its deltas.
struct generation_end {
  finish_reason finish = finish_reason::none;
  error failure;                ///< with finish_reason::failed and cancelled
  std::vector<model_work> work; ///< for each model
  std::uint32_t handoffs = 0;
  std::uint64_t ttft_us = 0; ///< inside the job, from its gateway to the first committed token
  std::uint64_t total_us = 0;
};

/// Who is told of one generation. Called on the engine's control thread: must not block or throw.
class generation_sink {
 public:
  virtual ~generation_sink() = default;
  virtual void on_delta(generation_delta&& x) = 0;
  /// The last call.
  virtual void on_end(generation_end&& x) = 0;
};

struct engine_model {
  std::string name;
  std::string role;
  std::vector<std::uint32_t> ranks; ///< of each replica's leading shard
  std::uint32_t context_tokens_max = 0;
};

/// What stays the same while the engine runs.
struct engine_facts {
  std::string method;
  std::string entry_model;
  std::vector<engine_model> models; ///< index = model_id
  std::uint32_t ranks = 1;
  std::uint32_t context_tokens_max = 0; ///< smallest of all models
  std::uint32_t vocab_tokens = 0;       ///< ids below are legal for every model
};

enum class engine_phase : std::uint8_t { loading, ready, draining, failed };

struct engine_model_counts {
  std::uint64_t generated_tokens = 0;
  std::uint64_t computed_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t fetched_tokens = 0;
  std::uint64_t pool_tokens = 0; ///< of all replicas; 0 while loading
  double kv_usage_share = 0;     ///< of its fullest replica's pool, when last asked
  std::uint32_t lost_replicas = 0;
};

struct engine_counts {
  engine_phase phase = engine_phase::loading;
  std::string why;              ///< with engine_phase::failed
  std::uint32_t waiting = 0;    ///< no token yet
  std::uint32_t running = 0;    ///< some tokens, no end yet
  std::uint64_t handoffs = 0;   ///< of requests that have ended
  std::uint64_t ttft_us = 0;    ///< of all that have a first token and have ended, added up
  std::uint64_t ttft_count = 0; ///< … and how many those are
  std::uint64_t finished = 0;   ///< by stop or length
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint32_t pool_tokens_min = 0; ///< smallest pool: what one request may hold at most
  std::string unanswered; ///< replicas that were asked how they are and did not answer yet
  std::vector<std::uint32_t> lost_ranks; ///< that the job goes on without
  std::vector<engine_model_counts> models;
};

/// A running job. Any thread may call it.
class engine {
 public:
  virtual ~engine() = default;

  virtual const engine_facts& facts() const = 0;
  virtual engine_counts counts() const = 0;

  /// Starts a generation; its sink is told of everything that follows, a refusal by the job
  /// included. Errors, of which the sink learns nothing: capacity (too many under way),
  /// unavailable (loading, draining or failed).
  virtual result<std::uint64_t> submit(generation_order order,
                                       std::shared_ptr<generation_sink> sink) = 0;

  /// Its sink is told of the end all the same. Unknown or ended: no effect.
  virtual void cancel(std::uint64_t generation) = 0;

  /// Asks every replica how it is, and calls `answer` from the control thread when all have said so
  /// (`counts` knows it then) or something is wrong. The text names that, and is empty if nothing
  /// is. Never called if a replica never answers, or the engine is gone.
  virtual void ask_status(std::function<void(std::string)> answer) = 0;
};

} // namespace tokenrouter
