#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "actors/messages.hpp"
#include "runtime/exec/step.hpp"
#include "runtime/policy/block_ledger.hpp"
#include "runtime/trace/event.hpp"
#include "runtime/wire/frame.hpp"

/// Messages that never leave a rank. They may share memory; who may touch it is said beside them.
namespace tokenrouter {

/// client → gateway: a request with its tokens. Answered by `token_delta`s and one `request_done`
/// to the sender, or by `request_done` alone if it is refused.
struct submit {
  std::uint64_t client_tag = 0; ///< the client's own name for it, repeated in every answer
  std::vector<token_id> prompt;
  request_spec spec;                    ///< prompt_tokens is set by the gateway
  std::optional<model_id> only_model{}; ///< writes all of it; none: the method routes
  std::vector<std::string> stop;        ///< the text ends before the first of these; none is empty
};

/// status client → gateway: asks every replica; each answers with a `replica_status` of that number
/// to the sender of the newest question. None comes before the job is ready.
struct ask_status {
  std::uint64_t number = 0;
};

/// client → gateway → request. Unknown tags are ignored: it may just have ended.
struct cancel {
  std::uint64_t client_tag = 0;
};

/// request → client: tokens that were committed, in order of position.
struct token_delta {
  std::uint64_t client_tag = 0;
  std::vector<commit> commits;
  std::vector<scored_token_info> prompt{}; ///< with the first, if it was asked for
  std::string text; ///< what they complete; may lag behind by part of a UTF-8 character
};

/// Work of one model for one request.
struct model_usage {
  std::uint32_t generated_tokens = 0;
  std::uint64_t computed_tokens = 0;
  std::uint64_t cached_tokens = 0;     ///< taken from the prefix cache instead
  std::uint64_t fetched_tokens = 0;    ///< of these: from a sibling's
  std::uint64_t recomputed_tokens = 0; ///< of both: a second time, after eviction or rollback
  std::uint32_t kv_tokens = 0; ///< positions it needed: computed + cached, less what came again
};

/// request → client: the end of a request, with the whole result.
struct request_done {
  std::uint64_t client_tag = 0;
  request_id request;
  finish_reason finish = finish_reason::none;
  error failure;                  ///< with finish_reason::failed
  std::vector<commit> output;     ///< every output token, in order
  std::string text;               ///< special tokens left out
  std::vector<model_usage> usage; ///< for each model
  std::uint32_t handoffs = 0;
  std::uint64_t ttft_us = 0;  ///< from submit to the first committed token
  std::uint64_t total_us = 0; ///< from submit to the last
};

/// request → gateway: it is over and answered.
struct request_ended {
  request_id request;
  std::uint64_t client_tag = 0;
};

/// scheduler → kv_pool: a request that holds nothing may take cached blocks that spell the start
/// of `tokens`, within the first `tokens_max`. Answered by `prefix_hit`.
struct prefix_query {
  request_id request;
  std::uint64_t age = 0;
  std::vector<token_id> tokens;
  std::uint32_t tokens_max = 0;
};

struct prefix_hit {
  request_id request;
  std::uint32_t tokens = 0; ///< leading tokens whose KV it holds now
};

/// scheduler → kv_pool: the request's blocks hold the KV of these leading tokens.
struct remember_prefix {
  request_id request;
  std::vector<token_id> tokens;
};

/// scheduler → kv_pool: blocks for those rows of a planned step that need more than they know to
/// be theirs. Answered by `lease_grant`.
struct lease {
  std::vector<block_ledger::want> wants;
  std::vector<block_ledger::holding> held{}; ///< all other requests that have the turn and blocks
};

struct lease_grant {
  std::vector<std::uint8_t> granted;       ///< one for each want
  std::vector<request_id> evicted;         ///< hold no KV any more
  std::vector<block_id> block_tables;      ///< of the granted wants, one after the other
  std::vector<std::uint32_t> block_counts; ///< one for each want; 0 if refused
  std::vector<std::uint32_t> own_tokens;   ///< as in block_ledger::lease_result
  std::vector<block_ledger::holding> cut;  ///< `held`, if they have no more than that left
  std::vector<block_copy> copies;          ///< to be done before the step
  bool loans = false; ///< some blocks are pinned or reserved: `blocks_back` says when fewer are
};

/// scheduler → kv_pool: their turns went to peers, or they are over; so much of their KV stays.
struct park {
  std::vector<block_ledger::holding> requests;
};
struct give_back_blocks {
  request_id request;
};

/// A step on its way between a scheduler and its model. The scheduler fills `in`, the model fills
/// `out`; whoever holds the message is the only one who touches it.
struct step_work {
  step_input in;
  step_output out;
  std::uint64_t sent_us = 0;
};

/// scheduler → model, answered by `step_done` with the same work.
struct run_step {
  std::shared_ptr<step_work> work;
};
struct step_done {
  std::shared_ptr<step_work> work;
};

/// model → supervisor, once.
struct model_loaded {
  shard_id shard;
  std::string kernels;
};
/// kv_fetcher → supervisor, once: all siblings are known, and the ways to their KV.
struct kv_settled {
  replica_id replica;
};
/// model → supervisor: it can't be loaded, or `running`: a step of it can't be completed.
struct model_failed {
  shard_id shard;
  error why;
  bool running = false;
  bool waited = false; ///< long enough to know of a rank that was lost
};

/// switchboard → link, link → switchboard: one encoded message of the protocol.
struct wire_payload {
  rank_id peer;
  std::vector<std::byte> bytes;
};

/// transport → link: a frame as it came in.
struct incoming_frame {
  frame_header header;
  std::vector<std::byte> payload;
};

/// link → supervisor.
struct peer_down {
  rank_id peer;
  std::string why;
};

/// link → switchboard → supervisor: the way of the peer's messages, so that none is overtaken.
struct peer_left {
  rank_id peer;
};

/// supervisor → switchboard → gateway, planner and every scheduler of the rank: the job goes on
/// without these.
struct replicas_lost {
  rank_id rank;
  std::vector<replica_id> replicas; ///< with a shard there; none was lost before
};

/// gateway → request: the same, and who serves it from now on. `replicas` is request_spec's.
struct replicas_changed {
  std::vector<replica_id> lost;
  std::vector<std::uint16_t> replicas;
  model_id fallback;   ///< of the live models, the one that writes where nothing better is left
  std::string failure; ///< the request can't go on, and why; empty: it can
};

/// supervisor → gateway: every rank is ready; requests may be admitted.
struct open_gateway {
  std::vector<replica_facts> replicas; ///< of all ranks
};

/// wire-up → supervisor: an actor whose end, before the job's, ends the job.
struct watch {
  caf::actor_addr who;
  std::string name;
  std::optional<replica_id> replica{}; ///< whose shard it runs
};

/// client → supervisor: nothing more will be asked of this job.
struct job_finished {
  std::uint8_t exit_code = 0;
};

} // namespace tokenrouter

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::submit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::ask_status)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::cancel)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::token_delta)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::request_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::request_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::prefix_query)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::prefix_hit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::remember_prefix)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::lease)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::lease_grant)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::park)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::give_back_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::run_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::step_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::model_loaded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::kv_settled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::model_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::wire_payload)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::incoming_frame)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::peer_down)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::peer_left)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::replicas_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::replicas_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::open_gateway)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::watch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::job_finished)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::trace_batch)
